"""Gaixie 改写: Chinese sentence paraphrases built, scored and learned at corpus scale.

The parts are gaixie.udfs, gaixie.jobs and gaixie.training; gaixie.conf holds their settings. In a
checkout they lie beside this folder, which links to them; an installed package has them in it.
"""
