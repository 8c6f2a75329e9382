# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Tools that the requests have."""
FUNCTION = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}
CUSTOM = {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}}}
