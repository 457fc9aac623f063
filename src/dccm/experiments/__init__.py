"""The paper, run again: which runs each table and figure needs, how they are made, and what they become."""
