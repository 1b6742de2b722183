"""One trial in its child: the phases, what each of them measures, and the proof of what it ran on."""
