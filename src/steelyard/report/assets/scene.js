// Draws scenes in 3D with a depth buffer of its own: no library, no graphics card, the same picture everywhere.
"use strict";
(() => {
  const scenes = JSON.parse(document.getElementById("scenes").textContent);
  const night = window.matchMedia("screen and (prefers-color-scheme: dark)");
  const LIGHT = [0.35, -0.55, 0.76];  // in the frame of the view: x right, y down, z to the eye

  const atNight = { "#1f2933": "#e4e8ec", "#2266aa": "#6aa8e0", "#c23030": "#f08080" };

  const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const times = (A, B) => {  // rigid or stretched transforms of 3 rows and 4 columns
    const C = new Float64Array(12);
    for (let i = 0; i < 3; i++) for (let j = 0; j < 4; j++) {
      C[4 * i + j] = A[4 * i] * B[j] + A[4 * i + 1] * B[4 + j] + A[4 * i + 2] * B[8 + j] + (j === 3 ? A[4 * i + 3] : 0);
    }
    return C;
  };

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const colours = (solid) => ({ day: rgb(solid.colour), night: rgb(atNight[solid.colour] || solid.colour) });

  // The triangles of a surface: whole numbers as texts.
  function surface(solid) {
    const placed = new Int16Array(bytes(solid.corners)), corners = new Float64Array(placed.length);
    for (let k = 0; k < placed.length; k++) corners[k] = solid.origin[k % 3] + solid.unit * placed[k];
    const triangles = new (solid.wide ? Uint32Array : Uint16Array)(bytes(solid.triangles));
    return { ...solid, corners, normals: new Int8Array(bytes(solid.normals)), triangles, ...colours(solid) };
  }

  // The corners of a profile that turns about z, in the frame that the solid moves with; triangles; normals.
  function mesh(solid) {
    const [n, T, count] = [solid.sides, solid.placement, solid.profile.length / 2];
    const corners = new Float64Array(3 * n * count), normals = new Float64Array(3 * n * count), triangles = [];
    for (let ring = 0; ring < count; ring++) for (let k = 0; k < n; k++) {
      const angle = 2 * Math.PI * (k + 0.5) / n, r = solid.profile[2 * ring], at = 3 * (ring * n + k);
      const p = [r * Math.cos(angle), r * Math.sin(angle), solid.profile[2 * ring + 1]];
      for (let i = 0; i < 3; i++) corners[at + i] = T[4 * i] * p[0] + T[4 * i + 1] * p[1] + T[4 * i + 2] * p[2] + T[4 * i + 3];
    }
    for (let ring = 0; ring + 1 < count; ring++) {
      const same = [0, 1].every((k) => solid.profile[2 * ring + k] === solid.profile[2 * ring + 2 + k]);
      for (let k = 0; k < n && !same; k++) {
        const a = ring * n + k, b = ring * n + (k + 1) % n;
        triangles.push(a, b, b + n, a, b + n, a + n);
      }
    }
    for (let f = 0; f < triangles.length; f += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => corners.subarray(3 * triangles[f + k], 3 * triangles[f + k] + 3));
      const u = [b[0] - a[0], b[1] - a[1], b[2] - a[2]], v = [c[0] - a[0], c[1] - a[1], c[2] - a[2]];
      const w = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      for (let k = 0; k < 3; k++) for (let i = 0; i < 3; i++) normals[3 * triangles[f + k] + i] += w[i];
    }
    return { ...solid, corners, normals, triangles, ...colours(solid) };
  }

  // One triangle into the buffers: z at each pixel decides, colours are blended where a solid is not opaque.
  function fill(frame, p, a, b, c, colour, opacity) {
    const { width, height, depth, pixels } = frame;
    const [ax, ay, bx, by, cx, cy] = [p[4 * a], p[4 * a + 1], p[4 * b], p[4 * b + 1], p[4 * c], p[4 * c + 1]];
    const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    if (area >= 0) return;  // seen from inside (y points down)
    const x0 = Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5)), x1 = Math.min(width - 1, Math.floor(Math.max(ax, bx, cx) - 0.5));
    const y0 = Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5)), y1 = Math.min(height - 1, Math.floor(Math.max(ay, by, cy) - 0.5));
    for (let y = y0; y <= y1; y++) for (let x = x0; x <= x1; x++) {
      const u = ((bx - x - 0.5) * (cy - y - 0.5) - (by - y - 0.5) * (cx - x - 0.5)) / area;
      const v = ((cx - x - 0.5) * (ay - y - 0.5) - (cy - y - 0.5) * (ax - x - 0.5)) / area;
      const w = 1 - u - v;
      if (u < 0 || v < 0 || w < 0) continue;
      const z = u * p[4 * a + 2] + v * p[4 * b + 2] + w * p[4 * c + 2], at = y * width + x;
      if (z <= depth[at]) continue;
      const shade = u * p[4 * a + 3] + v * p[4 * b + 3] + w * p[4 * c + 3], k = 4 * at;
      const under = pixels[k + 3] / 255, over = opacity + under * (1 - opacity);
      for (let i = 0; i < 3; i++) {
        pixels[k + i] = (Math.min(255, colour[i] * shade) * opacity + pixels[k + i] * under * (1 - opacity)) / over;
      }
      pixels[k + 3] = 255 * over;
      if (opacity === 1) depth[at] = z;
    }
  }

  function draw(view, quick) {
    const { canvas, scene, meshes, state } = view;
    const box = canvas.getBoundingClientRect(), shown = view.size || [box.width, box.height];
    const fine = (view.size ? 2 : window.devicePixelRatio || 1);
    canvas.width = Math.round(shown[0] * fine); canvas.height = Math.round(shown[1] * fine);
    const times_ = quick ? 1 : 2, width = canvas.width * times_, height = canvas.height * times_;
    const frames = scene.frames[state.k];
    const [centre, half] = view.close ? [[3, 7, 11].map((i) => frames[scene.load][i]), scene.close] : [scene.centre, scene.reach];
    const scale = Math.min(width, height) / (2.1 * half);
    const [ca, sa, ce, se] = [Math.cos(state.turn), Math.sin(state.turn), Math.cos(state.lift), Math.sin(state.lift)];
    const R = [[-sa, ca, 0], [-(-ca * se), -(-sa * se), -ce], [ca * ce, sa * ce, se]];  // right, down, to the eye
    const camera = new Float64Array(12);
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 3; j++) camera[4 * i + j] = R[i][j] * scale;
      camera[4 * i + 3] = -scale * (R[i][0] * centre[0] + R[i][1] * centre[1] + R[i][2] * centre[2]) + [width / 2, height / 2, 0][i];
    }
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.imageSmoothingQuality = "high";
    const light = view.paper || !night.matches, at = (T, x) => [0, 1].map((i) => (
      (T[4 * i] * x[0] + T[4 * i + 1] * x[1] + T[4 * i + 2] * x[2] + T[4 * i + 3]) / times_));
    const place = (solids, strength) => {
      const layer = new OffscreenCanvas(width, height);
      layer.getContext("2d").putImageData(painted(solids, light, camera, frames, width, height), 0, 0);
      pen.globalAlpha = strength;
      pen.drawImage(layer, 0, 0, canvas.width, canvas.height);
      pen.globalAlpha = 1;
    };
    if (view.close) {  // the arm is a shadow behind what it carries
      place(meshes.filter((solid) => solid.frame !== scene.load), light ? 0.45 : 0.35);
      place(meshes.filter((solid) => solid.frame === scene.load), 1);
      axes(pen, times(camera, frames[scene.load]), scene.axes, at, light, fine);
    } else {
      floor(pen, (x, y) => at(camera, [x, y, 0]), scene, light);
      place(meshes, 1);
    }
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn || 0) + 1);
  }

  // The solids in pixels, those that hide first.
  function painted(solids, light, camera, frames, width, height) {
    const image = new ImageData(width, height), depth = new Float32Array(width * height).fill(-1e9);
    const frame = { width, height, depth, pixels: image.data };
    for (const opaque of [true, false]) for (const solid of solids) {
      if ((solid.opacity === 1) !== opaque) continue;
      const M = times(camera, frames[solid.frame]), count = solid.corners.length / 3, p = new Float64Array(4 * count);
      for (let v = 0; v < count; v++) {
        const [x, y, z] = [solid.corners[3 * v], solid.corners[3 * v + 1], solid.corners[3 * v + 2]];
        for (let i = 0; i < 3; i++) p[4 * v + i] = M[4 * i] * x + M[4 * i + 1] * y + M[4 * i + 2] * z + M[4 * i + 3];
        p[4 * v + 3] = shade(M, solid.normals[3 * v], solid.normals[3 * v + 1], solid.normals[3 * v + 2]);
      }
      for (let f = 0; f < solid.triangles.length; f += 3) {
        fill(frame, p, solid.triangles[f], solid.triangles[f + 1], solid.triangles[f + 2], light ? solid.day : solid.night, solid.opacity);
      }
    }
    return image;
  }

  function shade(M, x, y, z) {
    const n = [0, 1, 2].map((i) => M[4 * i] * x + M[4 * i + 1] * y + M[4 * i + 2] * z);
    const size = Math.hypot(...n) || 1;
    return 0.5 + 0.55 * Math.max(0, (n[0] * LIGHT[0] + n[1] * LIGHT[1] + n[2] * LIGHT[2]) / size);
  }

  // A grid of 0.25 m under the arm, seen from above.
  function floor(pen, at, scene, light) {
    const step = 0.25, n = Math.ceil(0.6 * scene.reach / step);
    pen.strokeStyle = light ? "#dfe4e9" : "#2c343c";
    pen.lineWidth = 1;
    pen.beginPath();
    for (let k = -n; k <= n; k++) for (const across of [true, false]) {
      const ends = [-n * step, n * step].map((s) => (across ? at(s, k * step) : at(k * step, s)));
      pen.moveTo(...ends[0]);
      pen.lineTo(...ends[1]);
    }
    pen.stroke();
  }

  // The axes of the frame that the load is given in.
  function axes(pen, T, length, at, light, fine) {
    pen.strokeStyle = pen.fillStyle = light ? "#52606d" : "#a7b2bd";
    pen.lineWidth = 1.5 * fine;
    pen.font = `${13 * fine}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let k = 0; k < 3; k++) {
      const tip = [0, 1, 2].map((i) => (i === k ? length : 0));
      pen.beginPath();
      pen.moveTo(...at(T, [0, 0, 0]));
      pen.lineTo(...at(T, tip));
      pen.stroke();
      pen.fillText("xyz"[k], ...at(T, tip.map((x) => 1.12 * x)));
    }
  }

  for (const figure of document.querySelectorAll("[data-scene]")) {
    const scene = scenes[Number(figure.dataset.scene)], meshes = scene.solids.map((solid) => (solid.profile ? mesh(solid) : surface(solid)));
    const state = { k: 0, turn: -0.9, lift: 0.38 };
    const views = [...figure.querySelectorAll("canvas")].map((canvas, i) => ({ canvas, scene, meshes, state, close: i === 1 }));
    const [play, slider, clock] = ["button", "input", "output"].map((name) => figure.querySelector(name));
    let waiting = false, timer = 0;
    const show = (quick) => {
      clock.textContent = scene.t[state.k].toFixed(1) + " s";
      slider.value = state.k;
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; views.forEach((view) => draw(view, quick)); });
    };
    const settle = () => { clearTimeout(timer); timer = setTimeout(() => show(false), 150); };
    const turn = (dx, dy) => {
      state.turn -= dx / 120;
      state.lift = Math.max(-1.5, Math.min(1.5, state.lift + dy / 120));
      show(true);
      settle();
    };
    for (const { canvas } of views) {
      canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
      canvas.addEventListener("pointermove", (event) => { if (event.buttons) turn(event.movementX, event.movementY); });
      canvas.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [-12, 0], ArrowRight: [12, 0], ArrowUp: [0, -12], ArrowDown: [0, 12] }[event.key];
        if (step) { event.preventDefault(); turn(...step); }
      });
    }
    slider.max = scene.t.length - 1;
    slider.addEventListener("input", () => { state.k = Number(slider.value); show(true); settle(); });
    let running = 0;
    const stop = () => { cancelAnimationFrame(running); running = 0; play.textContent = "Play"; show(false); };
    play.addEventListener("click", () => {
      if (running) return stop();
      const start = performance.now() - 1000 * (scene.t[state.k] - scene.t[0]), length = scene.t[scene.t.length - 1] - scene.t[0];
      play.textContent = "Stop";
      const step = () => {
        const now = scene.t[0] + ((performance.now() - start) / 1000) % (length || 1);
        state.k = Math.max(0, scene.t.findLastIndex((t) => t <= now));
        show(true);
        running = requestAnimationFrame(step);
      };
      running = requestAnimationFrame(step);
    });
    if (scene.t.length < 2) figure.querySelector(".controls").remove();
    new ResizeObserver(() => show(false)).observe(views[0].canvas);
    night.addEventListener("change", () => show(false));
    window.addEventListener("beforeprint", () => views.forEach((view) => { view.paper = true; view.size = [330, 280]; draw(view); }));
    window.addEventListener("afterprint", () => views.forEach((view) => { view.paper = false; view.size = null; draw(view); }));
    views.forEach((view) => draw(view, true));
    show(false);
  }
})();
