import tseslint from 'typescript-eslint'

const bannedSyntax = [
  {
    selector: "MemberExpression[object.name='Date'][property.name='now']",
    message: 'Take a Clock.',
  },
  {
    selector: "MemberExpression[object.name='process'][property.name='hrtime']",
    message: 'Take a Clock.',
  },
  { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'Take a Clock.' },
  {
    selector: "MemberExpression[object.name='Math'][property.name='random']",
    message: 'Take a Chance.',
  },
  { selector: "MemberExpression[object.name='crypto']", message: 'Take an IdSource.' },
]
const bannedGlobals = [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'fetch',
  'performance',
  'Date.now',
]

/** The same, where they are imported. */
const bannedImports = [
  ...['node:timers', 'node:timers/promises', 'timers', 'timers/promises', 'node:perf_hooks'].map(
    (name) => ({ name, message: 'Take a Clock.' }),
  ),
  {
    name: 'node:crypto',
    importNames: [
      'randomBytes',
      'randomFill',
      'randomFillSync',
      'randomInt',
      'randomUUID',
      'webcrypto',
    ],
    message: 'Take an IdSource, or a Chance.',
  },
]
/** Layers that decide: what they do follows from what they are given. */
const deciding = ['core', 'source', 'coordinator', 'catalog', 'sink', 'verify']

/** Folders in dependency order: each may import only from itself and from those named. */
const layers = {
  core: [],
  source: ['core'],
  coordinator: ['core'],
  catalog: ['core'],
  sink: ['core', 'source', 'coordinator', 'catalog'],
  library: ['core', 'source', 'coordinator', 'catalog', 'sink'],
  // An auditor that shares code with the writer would share its mistakes.
  verify: ['core'],
}
const allLayers = ['core', 'source', 'coordinator', 'catalog', 'sink', 'library', 'verify', 'cli']

/** What a layer may import of another that it may not depend on as a whole. */
const parts = { verify: { catalog: '(?!store/|iceberg/list-tables\\.ts$)' } }

const layerRules = Object.entries(layers).map(([layer, allowed]) => ({
  files: [`src/${layer}/**/*.ts`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        paths: deciding.includes(layer) ? bannedImports : [],
        patterns: allLayers
          .filter((other) => other !== layer && !allowed.includes(other))
          .map((other) => ({
            regex: `^(\\.\\./)+${other}/${parts[layer]?.[other] ?? ''}`,
            message: `${layer} may not depend on ${other}.`,
          })),
      },
    ],
  },
}))

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', '.engines/', '.tsbuild/'] },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: true },
      ],
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'describe', 'it', 'suite'] },
          ],
        },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: false, allowAny: false, allowNullish: false },
      ],
      'no-console': 'error',
    },
  },
  ...layerRules,
  {
    files: [`src/{${deciding.join(',')}}/**/*.ts`],
    ignores: ['src/catalog/store/*-store.ts', 'src/core/system.ts'],
    rules: {
      'no-restricted-globals': ['error', ...bannedGlobals],
      'no-restricted-syntax': ['error', ...bannedSyntax],
    },
  },
  // Where the ports get their real clock, chance and ids.
  { files: ['src/core/system.ts'], rules: { 'no-restricted-imports': 'off' } },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts'],
    rules: { 'no-console': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
)
