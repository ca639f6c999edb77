/**
 * A decimal number as written, `digits × 10^exponent`, with no leading or trailing zero digit; zero
 * has no digits. Never goes through a JavaScript number.
 */
export type ExactNumber = {
  readonly negative: boolean
  readonly digits: string
  readonly exponent: number
}

const jsonNumber = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Reads a number in JSON's grammar, or tells that the text is none. */
export function exactNumber(text: string): ExactNumber | undefined {
  const match = jsonNumber.exec(text)
  if (match === null) return undefined
  const [, sign = '', whole = '', fraction = '', power = '0'] = match
  const all = whole + fraction
  let from = 0
  while (all.charCodeAt(from) === 48) from += 1
  let to = all.length
  while (to > from && all.charCodeAt(to - 1) === 48) to -= 1
  if (from === to) return { negative: false, digits: '', exponent: 0 }
  // A power beyond 10^9 is as far out of every range as 10^9 itself.
  const exponent = Math.max(-1e9, Math.min(1e9, Number(power)))
  return {
    negative: sign === '-',
    digits: all.slice(from, to),
    exponent: exponent - fraction.length + (all.length - to),
  }
}

/** The number times `10^scale`: `fine` when that is no integer, `large` when it has over 80 digits. */
export function unscaled(number: ExactNumber, scale: number): bigint | 'fine' | 'large' {
  if (number.digits === '') return 0n
  const shift = number.exponent + scale
  if (shift < 0) return 'fine'
  if (number.digits.length + shift > 80) return 'large'
  const magnitude = BigInt(number.digits + '0'.repeat(shift))
  return number.negative ? -magnitude : magnitude
}

/** An unscaled value as decimal text with exactly `scale` fraction digits. */
export function decimalText(value: bigint, scale: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0')
  const sign = value < 0n ? '-' : ''
  if (scale === 0) return sign + digits
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/**
 * The float32 nearest to a number's text. Rounding by way of float64 alone is off by one when the
 * float64 falls exactly between two float32 and the text does not.
 */
export function nearestFloat(text: string): number {
  const double = Number(text)
  const float = Math.fround(double)
  if (float === double || !Number.isFinite(float)) return float
  const other = float > double ? floatBeside(float, -1) : floatBeside(float, 1)
  if (Math.abs(float - double) !== Math.abs(other - double)) return float
  const side = compareExact(text, double)
  if (side === 0) return float
  return side > 0 ? Math.max(float, other) : Math.min(float, other)
}

function floatBeside(value: number, direction: 1 | -1): number {
  const float = new Float32Array([value])
  const bits = new Int32Array(float.buffer)
  const grows = value === 0 || value > 0 === direction > 0
  bits[0] = (bits[0] ?? 0) + (grows ? 1 : -1)
  return float[0] ?? 0
}

/** Sign of `text - value`, exactly: every float64 is a finite decimal. */
function compareExact(text: string, value: number): number {
  const exact = exactNumber(text)
  if (exact === undefined) return 0
  // 2^-1074 has 1074 fraction digits, so this scale makes both sides integers.
  const scale = 1100
  const shift = exact.exponent + scale
  if (shift < 0) return exact.negative ? -1 : 1
  const left = BigInt(exact.digits + '0'.repeat(shift)) * (exact.negative ? -1n : 1n)
  const right = scaledDouble(value, scale)
  return left < right ? -1 : left > right ? 1 : 0
}

function scaledDouble(value: number, scale: number): bigint {
  let mantissa = value
  let power = 0
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2
    power += 1
  }
  return (BigInt(mantissa) * 10n ** BigInt(scale)) >> BigInt(power)
}
