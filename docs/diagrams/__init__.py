"""`python -m docs.diagrams`: run the cases of docs/operators, and draw and tell in the pages what came out of them."""
