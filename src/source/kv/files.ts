/** The files of checkpoints, by paths of this machine. */
export interface KvFiles {
  /**
   * Writes a file that is not there yet, and the folders above it. It has its name only once it is
   * whole and on disk; after a failure there is none.
   * @throws SluiceError TABLE_EXISTS when there is a file of this name.
   */
  write(path: string, parts: Iterable<Uint8Array>): Promise<number>
  /** Undefined where there is no file. */
  size(path: string): Promise<number | undefined>
  /** Fewer bytes only at the end of the file. */
  read(path: string, start: number, end: number): Promise<Uint8Array>
}
