# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The tool server of word_tasks."""

import verifiers.v1 as vf


class WordTools(vf.Toolset[vf.ToolsetConfig]):
    TOOL_PREFIX = "words"

    @vf.tool
    def look(self, number: int) -> str:
        """Look a word up."""
        return f"word-{number}"


if __name__ == "__main__":
    WordTools.run()
