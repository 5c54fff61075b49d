import { App } from './app.ts';
import { byId } from './lib/dom.ts';
import { fetchBundledModels } from './model/bundled-models.ts';
import { ModelPicker } from './model/model-picker.ts';
import { Playground } from './playground/playground.ts';
import { showState } from './state.ts';
import { Views } from './views.ts';

const app = new App(new ModelPicker(await fetchBundledModels()));
new Playground(app);
const views = new Views(() => {});

byId('model-form', HTMLFormElement).addEventListener('submit', event => {
  event.preventDefault();
  void app.loadChosen();
});
byId('abort-load', HTMLButtonElement).addEventListener('click', () => app.abortLoad());
byId('unload', HTMLButtonElement).addEventListener('click', () => void app.unload());
views.show('playground');
showState('empty');
