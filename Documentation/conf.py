# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# For Sphinx, which scripts/docs starts.
import pathlib
import re

project = "kDAPL for Linux"
extensions = ["sphinx.ext.graphviz"]
graphviz_output_format = "svg"
author = "The kDAPL for Linux developers"
# Pages name it as |release|.
version = release = re.search('PACKAGE_VERSION="(.*)"', (
    pathlib.Path(__file__).parent.parent / "dkms.conf").read_text())[1]
html_title = project
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme = "alabaster"
# A line of code of 90 columns fits into a page of this width.
html_theme_options = {
    "page_width": "74em",
    "body_max_width": "none",
    "code_font_size": "0.85em",
    "fixed_sidebar": True,
}
highlight_language = "none"
# What is not documented one by one: scalars, handles, enums.
nitpicky = False
