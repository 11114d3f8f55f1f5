(() => {
  const live = document.getElementById("live");
  const shown = Number(live.dataset.picks);
  const poll = async () => {
    try {
      const state = await (await fetch("state.json", { cache: "no-store" })).json();
      live.dataset.state = state.state;
      live.querySelector("strong").textContent = state.newest;
      live.querySelector("span").textContent = state.words;
      if (state.picks !== shown && !document.hidden) { location.reload(); return; }
    } catch {
      live.dataset.state = "stale";
      live.querySelector("span").textContent = "The program has ended; this page stays as it is.";
    }
    setTimeout(poll, 1000);
  };
  setTimeout(poll, 1000);
})();
