"""Maps and settings of rspamd's module dkim_signing.

rspamd reads a changed map by itself, and the settings when it starts: they depend on the directory
alone. There is one map, so that a selector never meets the key of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dkimctl.service.export.plan import Plan

_MAP = "selectors.map"
# The module has no fallback to another domain: use_domain_custom chooses the domain that signs. The
# key of third-party signing may be another than the one for mail of its own domain.
_SETTINGS = """\
# To use it, write into local.d/dkim_signing.conf, and restart rspamd:
# .include(priority=1,duplicate=merge) "{settings}"
selector_map = "{map}";
path = "{keys}/${{selector}}._domainkey.${{domain}}";
try_fallback = false;
use_esld = false;
use_domain_custom = <<EOD
return function(task)
  local from = (task:get_from("mime") or {{}})[1]
  local domain = from and from.domain and from.domain:lower()
  for _, map in ipairs(rspamd_config:get_maps()) do
    if domain and map:get_uri() == "{map}" then
      if map:get_key(domain) then return domain end
      local third_party = map:get_key("*")
      if not third_party then return nil end
      local selector, signer = third_party:match("^(.+)%._domainkey%.(.+)$")
      task:get_mempool():set_variable("dkim_selector", selector)
      task:get_mempool():set_variable("dkim_key", "{keys}/" .. third_party)
      return signer
    end
  end
end
EOD;
"""


def rspamd_files(plan: Plan, directory: Path, keys: Path) -> Mapping[str, str]:
    """The content of each file in `directory`; `keys` has the key files."""
    lines = [f"{domain} {key.selector}\n" for domain, key in sorted(plan.by_domain.items())]
    if plan.third_party:
        lines.append(f"* {plan.third_party.fqdn}\n")
    settings = directory / "dkim_signing.conf"
    text = _SETTINGS.format(settings=settings, map=directory / _MAP, keys=keys)
    return {_MAP: "".join(lines), settings.name: text}
