/** The suites with a script of their own: they take minutes, or need strace. */
export default {
  files: ['dist/test/{crash,power,race,drill,terminal,table}/**/*.test.js'],
  timeout: '90m',
  workerThreads: false,
};
