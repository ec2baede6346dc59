"""Attacks on Argand as an adversary would make them, on the CPU, and how often it held.

    make attack
    python -m benchmarks.attack --minutes 10 --seed 1 --csv docs/data/attack.csv
    python -m benchmarks.attack --only damage --seed 1 --number 17      # one attempt again

Each attempt depends on the seed, the attack's name and its number alone, works in a temporary
folder, and runs what may end a process or take its memory in a child with limits. It holds or it
slips: a wrong result without an error, an error that blames the wrong thing, a hang, a traceback, a
file that was overwritten. Every slip is printed with the command that makes it again, and the exit
status is 1 where there was one.
"""
