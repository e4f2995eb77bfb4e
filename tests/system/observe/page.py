"""page.py ADDRESS ARTEL: looks at the dashboard of the runs 'run' (being trained, by two workers), 'done', 'pictures' and 'text' in
a browser."""
import subprocess
import sys

from browser import Browser

browser = Browser()
try:
    browser.open(sys.argv[1])
    browser.wait_for("document.body?.dataset.ready === 'yes'")
    browser.wait_for("document.querySelectorAll('#runs tbody tr').length === 4")
    browser.wait_for("document.querySelectorAll('#charts canvas').length >= 2")

    # Curves move while the run trains, and what is drawn moves with them.
    last = browser.evaluate("state.shown.get('run').last")
    browser.wait_for(f"state.shown.get('run').last > {last}")
    browser.wait_for(f"charts.charts.get('loss').plot.scales.x.max > {last}")
    browser.wait_for("document.querySelectorAll('#events li').length > 0")

    browser.key("+")
    browser.wait_for("charts.range !== null")
    browser.key("0")
    browser.wait_for("charts.range === null")
    browser.key("t")
    dark = browser.evaluate("document.documentElement.classList.contains('dark')")
    browser.key("t")
    browser.wait_for(f"document.documentElement.classList.contains('dark') !== {str(dark).lower()}")

    browser.evaluate("setCurrent('run')")
    browser.key("2")
    browser.wait_for("document.querySelector('#workers')?.innerText.includes('worker 1')")
    browser.wait_for("document.querySelectorAll('#workers svg.mesh circle').length === 2")
    browser.wait_for("document.querySelectorAll('#workers svg.mesh .link').length === 1")
    browser.wait_for("document.querySelector('#workers svg.mesh').textContent.includes('/s')")

    # New data does not disturb a user who chooses something, or moves through the table with Tab.
    browser.evaluate("document.querySelector('#workers select').focus()")
    updates = browser.evaluate("Number(document.body.dataset.updates)")
    browser.wait_for(f"Number(document.body.dataset.updates) > {updates + 1}")
    browser.wait_for("document.activeElement === document.querySelector('#workers select')")
    browser.evaluate("document.querySelector('#runs tbody input').focus()")
    label = browser.evaluate("document.activeElement.ariaLabel")
    browser.wait_for(f"Number(document.body.dataset.updates) > {updates + 3}")
    browser.wait_for(f"document.activeElement.ariaLabel === {label!r}")

    # The bar of a worker separates the wait for the wire from the wait for other workers.
    browser.wait_for("document.querySelectorAll('#workers .bar i.wire_wait').length === 2")
    # A heat map for each kind of time.
    browser.wait_for("document.querySelector('#over-time canvas') !== null")
    for kind in ("data", "waiting", "wire_wait", "wire", "computing"):
        browser.evaluate(f"const s = document.querySelector('#workers select'); s.value = {kind!r}; s.dispatchEvent(new Event('change'))".replace("const s", "var s"))
        browser.wait_for(f"heatKind === {kind!r} && document.querySelector('#over-time canvas').height === 48")

    # Where workers form a mesh, the picture follows its axes.
    links = browser.evaluate("""linksOf({workers: ['data 0, stage 0', 'data 0, stage 1', 'data 1, stage 0', 'data 1, stage 1']
        .map((mesh, i) => ({name: `worker ${i}`, host: 'a', mesh}))}).map(pair => pair.map(w => w.name.slice(7)).join('')).sort().join()""")
    if links != "01,02,13,23":
        sys.exit(f"links of a mesh: {links}")

    # A step: its average, then, when it has been traced, what came when.
    browser.wait_for("document.querySelector('#step h2').innerText === 'An average step'")
    browser.wait_for("document.querySelectorAll('#step .step-bar').length === 2")
    subprocess.run([sys.argv[2], "trace", "runs/run", "--steps", "3"], check=True, stdout=subprocess.DEVNULL)
    browser.wait_for("document.querySelector('#step h2').innerText.endsWith('as traced')")
    browser.wait_for("[...document.querySelectorAll('#step .step-bar')].every(bar => bar.childElementCount > 0)")
    # Pieces follow one another and stay within their bar.
    browser.wait_for("[...document.querySelectorAll('#step .step-bar i')].every(i => parseFloat(i.style.left) >= -0.01 && "
                     "parseFloat(i.style.left) + parseFloat(i.style.width) <= 100.01)")

    browser.evaluate("setCurrent('done')")
    browser.key("3")
    browser.wait_for("document.querySelector('#details img')?.naturalWidth > 0")
    browser.wait_for("document.querySelector('#details pre')?.innerText.includes('[train]')")
    browser.evaluate("document.querySelector('#notes').value = 'worth a second look'")
    browser.evaluate("document.querySelector('#notes + button').click()")
    browser.wait_for("document.querySelector('#details').innerText.includes('saved')")

    # Mistakes of a network, as parts of one picture; and texts of a language model, newest first.
    browser.evaluate("setCurrent('pictures')")
    browser.wait_for("document.querySelectorAll('#details .mistakes figure').length > 0")
    picture = browser.evaluate("getComputedStyle(document.querySelector('#details .mistakes .tile')).backgroundImage.slice(5, -2)")
    browser.wait_for(f"window.sheet ??= Object.assign(new Image(), {{src: {picture!r}}}), window.sheet.naturalWidth >= 12")
    browser.wait_for("document.querySelector('#details .mistakes figcaption').innerText.endsWith('%')")
    browser.wait_for("document.querySelectorAll('#details .texts li').length === 0")
    browser.evaluate("setCurrent('text')")
    browser.wait_for("document.querySelectorAll('#details .texts li').length > 0")
    browser.wait_for("document.querySelector('#details .texts p').innerText.length > 50")
    browser.wait_for("document.querySelectorAll('#details .mistakes').length === 0")

    browser.evaluate("Promise.all(['run', 'done'].filter(name => !state.shown.has(name)).map(toggle))")
    browser.key("4")
    browser.wait_for("document.querySelector('#compare').innerText.includes('train.epochs')")

    browser.evaluate("$('column').value = 'train.batch_size'; $('column').dispatchEvent(new Event('change'))")
    browser.wait_for("document.querySelector('#runs thead').innerText.includes('train.batch_size')")
    browser.evaluate("$('filter').value = 'train.batch_size>1000000'; $('filter').dispatchEvent(new Event('input'))")
    browser.wait_for("!$('none').hidden")
    browser.evaluate("$('filter').value = 'status=finished'; $('filter').dispatchEvent(new Event('input'))")
    browser.wait_for("document.querySelectorAll('#runs tbody tr').length === 3")

    browser.size(390, 844, phone=True)
    for key in "1234":
        browser.key(key)
        browser.wait_for(f"!document.querySelectorAll('main > section')[{int(key) - 1}].hidden")
        browser.wait_for("document.documentElement.scrollWidth <= innerWidth")
    if browser.problems:
        sys.exit(f"the console says: {browser.problems}")
finally:
    browser.close()
