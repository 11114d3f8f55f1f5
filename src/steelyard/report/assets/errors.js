// Whatever goes wrong is written into the page, where a reader and a test can see it.
"use strict";
function tell(words) {
  const show = () => {
    const line = document.createElement("p");
    line.textContent = "This page has an error: " + words;
    document.getElementById("errors").appendChild(line);
  };
  if (document.getElementById("errors")) show(); else document.addEventListener("DOMContentLoaded", show);
}
window.addEventListener("error", (event) => tell(event.message || "something could not be loaded"));
window.addEventListener("unhandledrejection", (event) => tell(String(event.reason)));
