"""The English stopwords: words of a question that say nothing about what is asked for.

Folded, apostrophes removed. A module and not a data file, because search reads no files; the list belongs to
the ranking rules, and a test compares it with the copy kept beside the tests.
"""

_WORDS = """
a about also am an and any are arent as at be been being but by can cant could couldnt did didnt do
does doesnt doing done dont for from had hadnt has hasnt have havent having he her here hers hes him
his how i if im in into is isnt it its ive may me might mine must my myself no nor not of on or our
ours shall she shes should shouldnt so some than that the their theirs them then there these they
theyre theyve this those to us was wasnt we were werent weve what whats when where wheres which who
whom whos whose why will with wont would wouldnt you your youre yours youve
"""

STOPWORDS = frozenset(_WORDS.split())
