/** What keeps Sluice from running here, as a message; undefined when nothing does. */
export function whyNotHere(platform: string, nodeVersion: string): string | undefined {
  if (platform === 'win32') {
    return (
      'error: Windows is not supported: Sluice is not tested there, and a lake must not be guessed at\n' +
      '  fix    run it on Linux or macOS, or inside WSL 2'
    )
  }
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19)) {
    return (
      `error: Node ${nodeVersion} is too old: Sluice needs Node 20.19 or newer\n` +
      '  fix    install Node 22 or 24, for example from https://nodejs.org'
    )
  }
  return undefined
}
