/** Strict types everywhere; and each call that once bit somebody is refused with what to use instead. */
import tseslint from 'typescript-eslint';

const FS_MUTATORS = [
  ...['appendFile', 'chmod', 'chown', 'copyFile', 'cp', 'createWriteStream', 'fchmod', 'fdatasync', 'fsync'],
  ...[
    'ftruncate',
    'futimes',
    'lchmod',
    'lchown',
    'link',
    'lutimes',
    'mkdir',
    'mkdtemp',
    'rename',
    'rm',
    'rmdir',
  ],
  ...['symlink', 'truncate', 'unlink', 'utimes', 'write', 'writeFile', 'writev'],
].flatMap((name) => [name, `${name}Sync`]);

const everywhere = [
  { name: 'fs', message: "import 'node:fs': a package named fs cannot take its place" },
  { name: 'child_process', message: "import 'node:child_process'" },
  {
    name: 'node:child_process',
    importNames: ['exec', 'execSync'],
    message: 'a shell reads quotes, spaces and dollars in paths; give an argument array to spawn',
  },
];

const oneWriter = [
  {
    name: 'node:fs',
    importNames: FS_MUTATORS,
    message: 'only lib/git/disk.ts writes (fault points, fsync order); take a Disk and give a Site',
  },
  {
    name: 'node:fs/promises',
    message: 'the order of writes is the order of lines: synchronous, through lib/git/disk.ts',
  },
];

const heavy = (...allowed) =>
  [
    { name: 'yargs', message: 'yargs is for cli/help.ts only: it doubles the start of a verb' },
    { name: 'fs-extra', message: 'fs-extra is for install paths only' },
    {
      name: 'isomorphic-git',
      message: 'isomorphic-git is loaded on demand by lib/git only; never for refs or the index',
    },
  ].filter(({ name }) => !allowed.includes(name));

const groups = (...names) =>
  names.map((name) => ({ group: [`**/${name}/**`], message: `this layer may not know ${name}/` }));

const imports = (paths, patterns = []) => ({
  'no-restricted-imports': ['error', { paths: [...everywhere, ...paths], patterns }],
});

const impure = {
  'no-console': 'error',
  'no-restricted-properties': [
    'error',
    { object: 'Date', property: 'now', message: 'time is handed in: host.now() or host.monotonicMs()' },
    { object: 'performance', property: 'now', message: 'time is handed in: host.monotonicMs()' },
    { object: 'Math', property: 'random', message: 'randomness is handed in: host.random or freshId' },
    { object: 'process', property: 'env', message: 'the environment is handed in: host.env' },
    {
      object: 'process',
      property: 'exit',
      message: 'a library never ends the program: throw a DurableError',
    },
    { object: 'process', property: 'exitCode', message: 'exit codes are chosen in cli/exit.ts' },
    { object: 'process', property: 'cwd', message: 'the folder is an argument' },
    { object: 'process', property: 'stdout', message: 'nothing in lib prints: return it' },
    { object: 'process', property: 'stderr', message: 'nothing in lib prints: return it' },
  ],
  'no-restricted-syntax': [
    'error',
    {
      selector: "NewExpression[callee.name='Date'][arguments.length=0]",
      message: 'time is handed in: host.now()',
    },
  ],
};

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'test/fixtures/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      'no-empty': ['error', { allowEmptyCatch: false }],
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true, named: true } }],
      ...imports([]),
    },
  },
  {
    files: ['lib/**/*.ts'],
    rules: { ...imports([...oneWriter, ...heavy()], groups('cli', 'hooks', 'test')), ...impure },
  },
  {
    files: ['lib/git/**/*.ts'],
    rules: imports([...oneWriter, ...heavy('isomorphic-git')], groups('cli', 'hooks', 'test')),
  },
  { files: ['lib/git/disk.ts'], rules: imports(heavy(), groups('cli', 'hooks', 'test')) },
  {
    // Where the outside is handed in, and the entry points of programs of their own.
    files: ['lib/host.ts', 'lib/git/fault-actions.ts', 'lib/**/*-entry.ts'],
    rules: { 'no-restricted-properties': 'off', 'no-restricted-syntax': 'off' },
  },
  { files: ['cli/**/*.ts'], rules: imports(heavy('yargs', 'fs-extra'), groups('test')) },
  { files: ['hooks/**/*.ts'], rules: imports(heavy('fs-extra'), groups('cli', 'test')) },
);
