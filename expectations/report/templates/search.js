(() => {
  "use strict";
  const STATES = { p: "published", s: "stale", h: "held", x: "rejected", m: "missing", r: "red", n: "planned" };
  const MOST = 60;
  const known = JSON.parse(document.getElementById("known").textContent);
  const box = document.getElementById("find");
  const list = document.getElementById("found");
  const said = document.getElementById("said");
  const long = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

  function* daysOf(run) {
    for (const [first, letters] of run.days) {
      const dated = first.length === 10;
      const at = dated ? Date.parse(first + "T00:00:00Z") : 0;
      for (let place = 0; place < letters.length; place += 1) {
        const letter = letters[place];
        const moment = new Date(at + place * 86400000);
        const name = dated ? moment.toISOString().slice(0, 10) : first;
        const state = STATES[letter.toLowerCase()];
        yield { name, state, page: letter !== letter.toLowerCase(), words: (name + " " + state + (dated ? " " + long.format(moment) : "")).toLowerCase() };
      }
    }
  }

  function line(href, text, state) {
    const item = document.createElement("li");
    const place = href ? document.createElement("a") : document.createElement("span");
    if (href) place.href = href;
    place.textContent = text;
    item.append(place);
    if (state) {
      const word = document.createElement("span");
      word.className = "state " + ({ published: "good", red: "bad", rejected: "bad", planned: "past" }[state] || "open");
      word.textContent = state;
      item.append(" ", word);
    }
    return item;
  }

  function search() {
    const terms = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const lines = [];
    let found = 0;
    const add = (...words) => { found += 1; if (found <= MOST) lines.push(line(...words)); };
    for (const run of terms.length ? known : []) {
      const title = run.run === "main" ? run.flow : run.flow + " · " + run.run;
      const own = (title + " " + run.more).toLowerCase();
      const rest = terms.filter((term) => !own.includes(term));
      if (!rest.length) { add(run.page ? run.in + run.page : "", title); continue; }
      for (const day of daysOf(run)) {
        if (rest.every((term) => day.words.includes(term))) add(day.page ? run.in + day.name + ".html" : "", title + ", " + day.name, day.state);
      }
    }
    list.replaceChildren(...lines);
    said.textContent = !terms.length ? "" : found > MOST ? "The first " + MOST + " of " + found + "." : found === 1 ? "1 found." : found + " found.";
  }

  document.getElementById("finding").hidden = false;
  box.addEventListener("input", search);
  search();
})();
