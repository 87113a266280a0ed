"""Passages of the papers that tests read: quoted word for word, a passage a line.

Of Evropeytsev et al. 2016 (Applied Sciences, open access under CC BY 4.0; docs/sources.md) the page
that states its figures, of Nakayama 2017 three sentences.
"""
