/** The suites with a script of their own: they take minutes, or need strace, or programs of others. */
export default {
  files: ['dist/test/{crash,power,race,drill,terminal,table,fence,real-agents}/**/*.test.js'],
  timeout: '90m',
  workerThreads: false,
};
