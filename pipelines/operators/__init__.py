"""What each operator means: one function over integers and columns, with no engine, no clock and no input or output."""
