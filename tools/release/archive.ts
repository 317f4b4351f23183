import { run } from "../kube/command.ts"

/**
 * Packs files of a folder so that their content alone decides the bytes: not when they were written, by which account,
 * under which umask, or in which order the file system lists them.
 */
export async function archive(folder: string, names: readonly string[], target: string, time: Date): Promise<void> {
  const uniform = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", "--sort=name"]
  const when = `--mtime=@${time.getTime() / 1000}`
  // gzip writes the time and the name of what it packs, unless it reads from a pipe.
  const packed = target.endsWith(".tgz") ? ["--use-compress-program=gzip --no-name -9"] : []
  const into = ["--create", "--format=ustar", "--file", target, "--directory", folder]
  await run("tar", [...into, ...uniform, when, ...packed, "--", ...names], { env: { ...process.env, LC_ALL: "C" } })
}
