"""What can be computed: every operation on values, and every physical instruction, declared once.

`elementwise` has the operations with their spellings and meanings, `physical` the instructions that the rules choose among.
"""
