"""Every instruction of the 2201 tables held against two judges of instruction costs that rest on none of our sources."""
