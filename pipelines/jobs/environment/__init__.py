"""Settings, engines, forms, and how a command ends."""
