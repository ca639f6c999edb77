/** Exchange with Apache Arrow: where an application hands batches over, or takes them. */
export { fromArrow, type FromArrow, type FromArrowOptions } from './arrow-in.ts'
export { arrowSchema, toArrow } from './arrow-out.ts'
