"""The plugins this package brings."""

from vsr.engine.plugins.fast_response import FAST_RESPONSE
from vsr.engine.plugins.header_mutation import HEADER_MUTATION
from vsr.engine.plugins.request_params import REQUEST_PARAMS
from vsr.engine.plugins.system_prompt import SYSTEM_PROMPT

BUILTIN_PLUGINS = (FAST_RESPONSE, HEADER_MUTATION, REQUEST_PARAMS, SYSTEM_PROMPT)
