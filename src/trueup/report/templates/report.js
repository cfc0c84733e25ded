"use strict";
(function () {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const views = {};
  const options = {renderer: "svg", actions: false, tooltip: {theme: "trueup"}};

  function select(id, act) {
    const element = document.getElementById(id);
    if (!element) return;
    element.addEventListener("change", () => act(element.value));
    act(element.value);
  }

  function signal(names, param, value) {
    return Promise.all(names.filter((name) => views[name]).map(
      (name) => views[name].signal(param, value).runAsync()));
  }

  function told(selector, text) {
    for (const element of document.querySelectorAll(selector)) element.textContent = text;
  }

  function words(id) {
    const element = document.getElementById(id);
    return element.options[element.selectedIndex].textContent;
  }

  function showLoss(loss) {
    told(".shown-loss", "(" + words("select-loss") + ")");
    signal(["rungs", "curve"], "loss", loss);
    for (const row of document.querySelectorAll("#table-rungs tr[data-loss]")) {
      row.hidden = row.dataset.loss !== loss;
    }
  }

  function showRung(rung) {
    signal(["curve"], "rung", rung);
    told("#curve-rung", "(rung " + rung + ")");
  }

  const drawn = Object.keys(specs).map(function (name) {
    const place = document.getElementById("fig-" + name);
    if (!place) return Promise.resolve();
    place.replaceChildren();
    return window.vegaEmbed(place, specs[name], options).then(function (made) {
      views[name] = made.view;
      // The place itself is an image with a description; its parts are not read out.
      place.querySelector("svg").setAttribute("aria-hidden", "true");
    });
  });

  Promise.all(drawn).then(function () {
    select("select-loss", showLoss);
    select("select-rung", showRung);
    select("select-answer", (value) => signal(["moves"], "answer", value));
    select("select-metric", function (value) {
      told("#shown-metric", words("select-metric"));
      signal(["metrics"], "metric", value);
    });
    document.documentElement.dataset.ready = "true";
  });
})();
