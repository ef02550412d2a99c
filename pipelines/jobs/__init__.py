"""The only place where settings, engines, operators and expectations meet; each job is a `main(argv)` as well."""
