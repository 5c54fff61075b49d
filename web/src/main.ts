import { App } from './app.ts';
import { ensureIsolation } from './isolation.ts';
import { byId } from './lib/dom.ts';
import { fetchBundledModels } from './model/bundled-models.ts';
import { ModelPicker } from './model/model-picker.ts';
import { OtherViews } from './other-views.ts';
import { Playground } from './playground/playground.ts';
import { showState } from './state.ts';
import { controlBindings, UrlBinding } from './url-binding.ts';
import { Views, viewNames } from './views.ts';

// Before anybody has written anything that a reload would lose.
if (await ensureIsolation()) await new Promise(() => {});

const picker = new ModelPicker(await fetchBundledModels());
const app = new App(picker);
const playground = new Playground(app);
const others = new OtherViews(app, playground, () => url.changed());
const views = new Views(view => {
  void others.open(view);
  url.changed();
});
const url = new UrlBinding([
  {
    key: 'view',
    initial: 'playground',
    get: () => views.shown,
    set: value => views.show(viewNames.find(name => name === value) ?? 'playground'),
  },
  {
    key: 'lesson',
    initial: '',
    get: () => others.lesson,
    set: value => {
      others.lesson = value;
    },
  },
  {
    key: 'model',
    initial: '',
    get: () => picker.name ?? '',
    set: value => {
      picker.name = value;
    },
  },
  ...controlBindings(document),
]);

byId('model-form', HTMLFormElement).addEventListener('submit', event => {
  event.preventDefault();
  void app.loadChosen();
});
byId('abort-load', HTMLButtonElement).addEventListener('click', () => app.abortLoad());
byId('unload', HTMLButtonElement).addEventListener('click', () => void app.unload());
views.show('playground');
url.read();
showState('empty');
