'use strict'
// Shows the title of the mark under the pointer or the focus in the panel below its picture.
for (const figure of document.querySelectorAll('figure')) {
  const panel = figure.querySelector('.panel')
  const show = event => {
    const mark = event.target.closest('.mark, .bar')
    const title = mark && mark.querySelector('title')
    if (!title) return
    panel.hidden = false
    panel.textContent = title.textContent
    for (const row of document.querySelectorAll('tr.current')) row.classList.remove('current')
    const id = (mark.getAttribute('href') || '').slice(1)
    const row = id && document.getElementById(id)
    if (row) row.classList.add('current')
  }
  figure.addEventListener('pointerover', show)
  figure.addEventListener('focusin', show)
}
