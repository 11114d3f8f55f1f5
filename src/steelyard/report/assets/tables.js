// On a phone, a table that is wider than the screen becomes a list: its rows one below the other,
// each cell with the name of its column.
"use strict";
{
  const phone = window.matchMedia("screen and (max-width: 600px)");
  const named = (table) => {
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim());
    for (const body of table.tBodies) {
      for (const row of body.rows) {
        [...row.cells].forEach((cell, i) => { cell.dataset.column = names[i] || ""; });
      }
    }
  };
  const arrange = () => {
    for (const table of document.querySelectorAll("table")) {
      if (!table.tHead) continue;
      if (!table.classList.contains("listed")) named(table);
      table.classList.remove("listed");
      if (phone.matches && table.offsetWidth > table.parentElement.clientWidth + 1) table.classList.add("listed");
    }
  };
  document.addEventListener("DOMContentLoaded", arrange);
  window.addEventListener("hashchange", () => setTimeout(arrange, 0));
  phone.addEventListener("change", arrange);
}
