// Nothing: two radio buttons need no script.
