/**
 * The columns of the torture table and the values each of them holds. A value is its JSON text, so
 * that no JavaScript number stands between a test and what it means; values are listed in rising
 * order where a type has one.
 */
export type TortureColumn = {
  readonly name: string
  readonly type: string
  readonly values: readonly string[]
  /** That all engines compare its values alike, so that filters can be tested. */
  readonly isOrdered?: true
}

/** Texts as JSON, each once: with few digits some of the times below are the same. */
const text = (...values: readonly string[]): string[] => [
  ...new Set(values.map((value) => JSON.stringify(value))),
]
const base64 = (...values: readonly Uint8Array[]): string[] =>
  values.map((value) => JSON.stringify(Buffer.from(value).toString('base64')))

/** Fractions of a second with exactly this many digits. */
const fraction = (digits: number, of: string): string =>
  digits === 0 ? '' : `.${of.slice(0, digits)}`

const integers: readonly TortureColumn[] = [
  ['tiny', 'TINYINT', -128n, 127n],
  ['small', 'SMALLINT', -32768n, 32767n],
  ['int', 'INT', -(2n ** 31n), 2n ** 31n - 1n],
  ['long', 'BIGINT', -(2n ** 63n), 2n ** 63n - 1n],
].map(([name, type, least, most]) => ({
  name: String(name),
  type: String(type),
  isOrdered: true,
  values: [least, -100n, -1n, 0n, 1n, 100n, most].map(String),
}))

const beyondDoubles: TortureColumn = {
  name: 'long_exact',
  type: 'BIGINT',
  isOrdered: true,
  // Neighbors that are one number as doubles.
  values: [
    '-9223372036854775807',
    '-9007199254740993',
    '-9007199254740992',
    '9007199254740992',
    '9007199254740993',
    '9223372036854775806',
  ],
}

const floats: readonly TortureColumn[] = [
  {
    name: 'float',
    type: 'FLOAT',
    values: [
      '"-Infinity"',
      '-3.4028234663852886e38',
      '-1.5',
      '-1.401298464324817e-45',
      '-0.0',
      '0.0',
      '1.401298464324817e-45',
      '0.1',
      '16777216',
      '3.4028234663852886e38',
      '"Infinity"',
      '"NaN"',
    ],
  },
  {
    name: 'double',
    type: 'DOUBLE',
    values: [
      '"-Infinity"',
      '-1.7976931348623157e308',
      '-2.5',
      '-5e-324',
      '-0.0',
      '0',
      '5e-324',
      '0.1',
      '9007199254740992',
      '1.7976931348623157e308',
      '"Infinity"',
      '"NaN"',
    ],
  },
  { name: 'zeros', type: 'DOUBLE', values: ['-0.0', '0.0'] },
  { name: 'no_numbers', type: 'FLOAT', values: ['"NaN"'] },
  {
    name: 'ratio',
    type: 'DOUBLE',
    isOrdered: true,
    values: ['-1e300', '-2.5', '-1e-300', '0', '1e-300', '0.1', '1e22', '1e300'],
  },
  {
    name: 'real',
    type: 'FLOAT',
    isOrdered: true,
    values: ['-1048576', '-2.5', '0', '0.5', '1024'],
  },
]

const decimals: readonly TortureColumn[] = [
  ['decimal_9', 'DECIMAL(9, 2)', ['-9999999.99', '-1', '-0.01', '0', '0.01', '1.5', '9999999.99']],
  [
    'decimal_18',
    'DECIMAL(18, 4)',
    [
      '-99999999999999.9999',
      '-1.0001',
      '0',
      '0.0001',
      '12345678901234.5678',
      '99999999999999.9999',
    ],
  ],
  [
    'decimal_38',
    'DECIMAL(38, 10)',
    [
      '-9999999999999999999999999999.9999999999',
      '-1844674407.3709551616',
      '-0.0000000001',
      '0',
      '922337203.6854775808',
      '"1844674407.3709551616"',
      '9999999999999999999999999999.9999999999',
    ],
  ],
].map(([name, type, values]) => ({
  name: String(name),
  type: String(type),
  isOrdered: true,
  values: typeof values === 'object' ? values : [],
}))

const astral = '😀𐍈'
const texts: readonly TortureColumn[] = [
  { name: 'char', type: 'CHAR(4)', values: text('', ' ', 'ab', 'abcd', 'é€😀𐍈'), isOrdered: true },
  {
    name: 'text',
    type: 'STRING',
    isOrdered: true,
    values: text(
      ...[
        '',
        '\u0000zero',
        ' ',
        '"quoted"',
        "'; drop table",
        'NULL',
        'a',
        'aaaaaaaaaaaaaaaa',
        'aaaaaaaaaaaaaaaab',
        'a\tb\nc\r\\d',
        'e\u0301',
        '\u00e9',
        '漢字漢字漢字漢字漢字漢字漢字漢字漢字',
        '\ud7ff'.repeat(17),
        '\ue000',
        '\uffff'.repeat(17),
        astral,
        astral.repeat(10),
        '\u{10ffff}'.repeat(17),
      ].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    ),
  },
  {
    name: 'fixed',
    type: 'BINARY(3)',
    isOrdered: true,
    values: base64(
      Uint8Array.of(0, 0, 0),
      Uint8Array.of(0, 0, 1),
      Uint8Array.of(127, 255, 0),
      Uint8Array.of(128, 0, 0),
      Uint8Array.of(255, 255, 255),
    ),
  },
  {
    name: 'bytes',
    type: 'BYTES',
    isOrdered: true,
    values: base64(
      Uint8Array.of(),
      Uint8Array.of(0),
      Uint8Array.of(0, 255),
      new TextEncoder().encode('text'),
      new Uint8Array(20).fill(128),
      new Uint8Array(17).fill(255),
    ),
  },
]

const zeroToSix = [0, 1, 2, 3, 4, 5, 6]

const times: readonly TortureColumn[] = [
  {
    name: 'date',
    type: 'DATE',
    isOrdered: true,
    values: text(
      '1900-01-01',
      '1969-12-31',
      '1970-01-01',
      '2000-02-29',
      '2026-03-29',
      '2299-12-31',
    ),
  },
  // Beyond what ClickHouse has days for.
  { name: 'date_wide', type: 'DATE', values: text('0001-01-01', '1582-10-10', '9999-12-31') },
  {
    name: 'timestamp_wide',
    type: 'TIMESTAMP(6)',
    values: text('0001-01-01T00:00:00', '1677-09-21T00:12:43.145224', '9999-12-31T23:59:59.999999'),
  },
  ...zeroToSix.flatMap((digits): TortureColumn[] => [
    {
      name: `time_${String(digits)}`,
      type: `TIME(${String(digits)})`,
      isOrdered: true,
      values: text(
        '00:00:00',
        `00:00:00${fraction(digits, '100001')}`,
        `12:34:56${fraction(digits, '789012')}`,
        `23:59:59${fraction(digits, '999999')}`,
      ),
    },
    {
      name: `timestamp_${String(digits)}`,
      type: `TIMESTAMP(${String(digits)})`,
      isOrdered: true,
      values: text(
        '1900-01-01T00:00:00',
        `1969-12-31T23:59:59${fraction(digits, '999999')}`,
        '1970-01-01T00:00:00',
        // An hour that does not exist in Berlin, and one that exists twice in New York.
        `2026-03-29T02:30:00${fraction(digits, '123456')}`,
        `2026-11-01T01:30:00${fraction(digits, '000001')}`,
        '2261-12-31T23:59:59',
      ),
    },
    {
      name: `instant_${String(digits)}`,
      type: `TIMESTAMP_LTZ(${String(digits)})`,
      isOrdered: true,
      values: text(
        '1901-01-01T00:00:00+14:00',
        `1969-12-31T23:59:59${fraction(digits, '999999')}Z`,
        '1970-01-01T01:00:00+01:00',
        `2026-03-29T02:30:00${fraction(digits, '123456')}+01:00`,
        `2026-11-01T01:30:00${fraction(digits, '000001')}-04:00`,
        `2026-11-01T01:30:00${fraction(digits, '000001')}-05:00`,
        '2261-12-31T23:59:59Z',
      ),
    },
  ]),
]

const nested: readonly TortureColumn[] = [
  {
    name: 'list',
    type: 'ARRAY<BIGINT>',
    values: ['[]', '[null]', '[1,null,-9223372036854775808]'],
  },
  {
    name: 'texts',
    type: 'ARRAY<STRING NOT NULL>',
    values: ['[]', '[""]', '["a","😀","","b"]', JSON.stringify(Array<string>(300).fill('x'))],
  },
  {
    name: 'lists',
    type: 'ARRAY<ARRAY<INT>>',
    values: ['[]', '[[]]', '[null]', '[[1],[],null,[null,2,3]]'],
  },
  {
    name: 'map',
    type: 'MAP<STRING, DECIMAL(12, 3)>',
    values: ['{}', '{"":null}', '{"a":1.5,"😀":-999999999.999,"b.c":0}'],
  },
  {
    name: 'maps',
    type: 'MAP<STRING, MAP<STRING, BOOLEAN>>',
    values: ['{}', '{"x":{}}', '{"x":{"t":true,"n":null},"y":null}'],
  },
  {
    name: 'row',
    type: 'ROW<a INT, b STRING NOT NULL, c ROW<d DOUBLE, e BYTES>>',
    values: [
      '{"a":null,"b":"","c":null}',
      '{"a":1,"b":"é","c":{"d":"NaN","e":"AP8="}}',
      '{"b":"only this","c":{}}',
    ],
  },
  {
    name: 'rows',
    type: 'ARRAY<ROW<at TIMESTAMP(3), tags ARRAY<STRING>, counts MAP<STRING, INT>>>',
    values: [
      '[]',
      '[null,{"at":null,"tags":null,"counts":null}]',
      '[{"at":"1969-12-31T23:59:59.999","tags":["x",null],"counts":{"k":1,"n":null}},{"tags":[]}]',
    ],
  },
  {
    name: 'by_text',
    type: 'MAP<STRING, ARRAY<ROW<x DATE, y DECIMAL(38, 0)>>>',
    values: [
      '{"a":[{"x":"1969-12-31","y":99999999999999999999999999999999999999},null],"b":[]}',
      '{"c":null}',
    ],
  },
]

/** Every type of Fluss, each with the values that have broken a writer or a reader somewhere. */
export const tortureColumns: readonly TortureColumn[] = [
  { name: 'yes', type: 'BOOLEAN', values: ['false', 'true'] },
  ...integers,
  beyondDoubles,
  ...floats,
  ...decimals,
  ...texts,
  ...times,
  ...nested,
]

/** Columns that an engine cannot read, by a limit of its own. */
export const beyondEngines = {
  /** ClickHouse cuts times to seconds, and its dates end at 1900 and 2299. */
  chdb: tortureColumns
    .filter(({ name, type }) => type.startsWith('TIME(') || name.endsWith('_wide'))
    .flatMap(({ name }) => [name, `${name}_null`]),
  /** Null lists of rows come as empty ones: it builds them anew from their offsets alone. */
  pyiceberg: ['rows_null'],
}
