"""What can be computed, and on what, declared once.

`types` has the types of elements and the memories, `elementwise` the operations with their spellings and meanings, `physical` the
instructions that the rules choose among. `records` makes the classes of all rooms.
"""
