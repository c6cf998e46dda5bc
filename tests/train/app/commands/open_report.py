# SPDX-License-Identifier: Apache-2.0
"""Opens pages in headless Chromium: open_report.py PAGE.html... Checks each at 1280 and 390 pixels, light and dark: nothing
is wider than the window but tables, which scroll; no label of a chart is crossed by a line; no message in the console, no
script. Prints what is wrong.

Exit codes: 0 nothing; 1 something; 77 there is no Chromium."""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if browser is None:
    print("no chromium in PATH")
    sys.exit(77)

# Reads the page in a frame of a given width, since --window-size has a least width, and writes what it finds to its own body.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><iframe id="f" style="border:0;width:{width}px;height:900px"
srcdoc="{page}"></iframe><script>
const frame = document.getElementById("f");
frame.onload = () => {{
  const root = frame.contentDocument.documentElement;
  const wide = [...root.querySelectorAll("body *")].filter(e => !e.closest(".wide") && !e.closest("svg") &&
    e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.tagName + "." + e.className);
  const visible = e => e.getClientRects().length > 0 && e.getBoundingClientRect().width > 0;
  const crossed = [];  // labels of vertical lines
  for (const svg of root.querySelectorAll("svg")) {{
    const labels = [...svg.querySelectorAll(":scope .mark text")].filter(visible);
    for (const label of labels) {{
      const box = label.getBoundingClientRect();
      const meets = r => r.left < box.right - 1 && r.right > box.left + 1 && r.top < box.bottom - 3 && r.bottom > box.top + 3;
      const others = [...svg.querySelectorAll(":scope .mark line"), ...labels].filter(e => e.parentNode != label.parentNode);
      if (others.some(e => meets(e.getBoundingClientRect()))) crossed.push(label.textContent);
    }}
  }}
  const clipped = [...root.querySelectorAll("table")].filter(table => {{
    const scrolls = table.closest(".wide");
    return !scrolls || frame.contentWindow.getComputedStyle(scrolls).overflowX != "auto" || scrolls.tabIndex != 0;
  }}).map(table => table.innerText.slice(0, 40));
  document.body.insertAdjacentHTML("beforeend", "<pre id=found></pre>");
  document.getElementById("found").textContent = JSON.stringify({{scroll: root.scrollWidth, client: root.clientWidth,
    scripts: frame.contentDocument.scripts.length, wide: wide.slice(0, 5), crossed, clipped, charts: root.querySelectorAll("svg.axes").length,
    empty: [...root.querySelectorAll("svg path")].filter(p => p.getBBox().width + p.getBBox().height == 0).length,
    text: root.innerText.length}});
}};
</script>"""


def run(page, *options):
    end = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
                          "--allow-file-access-from-files", *options, page.as_uri()],
                         capture_output=True, text=True, timeout=120)
    # Not what Chromium's own pages say, of a slow machine.
    return end.stdout, [line for line in re.findall(r"CONSOLE.*", end.stderr) if "source: chrome://" not in line]


bad = []
with tempfile.TemporaryDirectory() as folder:
    frame = pathlib.Path(folder, "frame.html")
    for name in map(pathlib.Path, sys.argv[1:]):
        page = name.resolve()
        for scheme in (0, 1):  # dark, light
            messages = run(page, f"--blink-settings=preferredColorScheme={scheme}", "--dump-dom")[1]
            bad += [f"{name}: {message}" for message in messages]
        # In the frame the page's own policy must not meet the script of this test, which is outside.
        for width in (1280, 390):
            frame.write_text(FRAME.format(width=width, page=html.escape(page.read_text())))
            dom, _ = run(frame, "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom")
            text = re.search(r'<pre id="found">(.*?)</pre>', dom, re.S)
            if text is None:
                bad.append(f"{name}: not loaded at {width} pixels")
                continue
            found = json.loads(html.unescape(text[1]))
            print(f"{name} at {width} pixels: {found}")
            if found["scroll"] > found["client"] or found["client"] != width or found["wide"]:
                bad.append(f"{name}: overflows at {width} pixels")
            if found["crossed"] or found["clipped"]:
                bad.append(f"{name}: labels are crossed, or tables do not scroll, at {width} pixels")
            if found["scripts"] or not found["charts"] or found["text"] < 1000:
                bad.append(f"{name}: has scripts, or lacks charts or text")
print(*bad, sep="\n")
sys.exit(bool(bad))
