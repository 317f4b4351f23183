/** The user has to write something else: exit code 2 of the command line. */
export class UsageError extends Error {
  override name = "UsageError"
}

/** It cannot be done as things are: exit code 1 of the command line. The message is shown as it is. */
export class Failure extends Error {
  override name = "Failure"
}
