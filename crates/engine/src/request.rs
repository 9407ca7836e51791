//! The request machine: its steps in the order of life, the table of legal transitions, and the loop.
