// Exhibits of a run: mistakes as pictures, and generated texts.
'use strict';

const tileWidth = 92;  // pixels on the page

// The part of mistakes.png with one picture.
function mistakeTile(url, sheet, index, label) {
  const scale = tileWidth / sheet.tile_width, height = Math.round(sheet.tile_height * scale);
  const tile = el('div', {className: 'tile', title: label});
  tile.setAttribute('role', 'img');
  tile.setAttribute('aria-label', label);
  const column = index % sheet.columns, row = Math.floor(index / sheet.columns);
  tile.style.cssText = `width:${tileWidth}px;height:${height}px;background-size:${sheet.columns * tileWidth}px auto;` +
    `background-position:-${column * tileWidth}px -${row * sheet.tile_height * scale}px`;
  tile.style.backgroundImage = `url("${url}")`;
  return tile;
}

// Cached until the mistakes change, so that pictures are not fetched again at each step.
let shownMistakes = {key: '', card: null};

function mistakesCard(name, sheet) {
  if (!sheet?.mistakes?.length || !(sheet.tile_width > 0) || !(sheet.columns > 0)) return null;
  const key = `${name} ${JSON.stringify(sheet)}`;
  if (shownMistakes.key === key) return shownMistakes.card;
  const url = 'api/file?' + query({run: name, file: 'mistakes.png', step: sheet.step});
  const figures = sheet.mistakes.map((mistake, i) => {
    const percent = `${(100 * mistake.probability).toFixed(1)}\u00a0%`;
    return el('figure', {}, mistakeTile(url, sheet, i, `${mistake.label}, taken for ${mistake.answer}, ${percent}`),
      el('figcaption', {}, mistake.label, el('br', {}), el('span', {className: 'answer'}, mistake.answer), ` ${percent}`));
  });
  const card = el('div', {className: 'card'}, el('h2', {}, 'Mistakes'),
    el('p', {className: 'quiet'}, `Mistakes on the ${sheet.part} part after step ${Number(sheet.step).toLocaleString('en')}: label, answer, and its probability.`),
    el('div', {className: 'mistakes'}, ...figures));
  shownMistakes = {key, card};
  return card;
}

function textsCard(texts) {
  if (!texts?.length) return null;
  return el('div', {className: 'card'}, el('h2', {}, 'Texts'),
    el('ol', {className: 'texts', tabIndex: 0}, ...texts.map(text => el('li', {},
      el('span', {className: 'quiet'}, `step ${Number(text.step).toLocaleString('en')}`),
      el('p', {}, el('b', {}, text.prompt ?? ''), text.text ?? '')))));
}
