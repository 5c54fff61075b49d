import { defineConfig } from 'vite';
import { bundledModels } from './bundled-models-plugin.ts';

// Without these two a browser gives a page no shared memory, and so no threads.
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

// `kvasm` needs no alias: inside its own package the name leads, through "exports", to the built dist/.
export default defineConfig({
  root: import.meta.dirname,
  // Any folder of any static host will do.
  base: './',
  // A file that is missing must be a 404 and not the page, or a model without it could not be told from a whole one.
  appType: 'mpa',
  plugins: [bundledModels()],
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    // The package apart, so that the page's own weight can be told.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'kvasm', test: /[\\/]dist[\\/]/ }] } },
    },
  },
  server: { headers: isolation, fs: { allow: ['..'] } },
  preview: { headers: isolation },
});
