#include "artel/cluster/host_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/process.h"
#include "artel/base/text.h"

namespace artel {
namespace {

constexpr std::string_view kMark = "artel-check ";
constexpr double kInstallSeconds = 120;

bool is_path(const std::string& program) { return program.find('/') != program.npos; }

// Runs a line in a POSIX shell on a host, whatever the user's login shell is.
std::vector<std::string> remote(const HostCheckOptions& options, const std::string& host,
                                const std::string& line) {
  std::vector<std::string> words = options.shell;
  words.push_back(host);
  words.push_back("exec sh -c " + shell_word(line));
  return words;
}

std::string probe(const HostCheckOptions& options) {
  const std::string program = shell_word(options.program);
  return fmt::format(
      "cd {0} 2>/dev/null || {{ echo {1}folder; exit 0; }}; "
      "p=$(command -v {2}) || p=$HOME/.local/bin/{2}; "
      "[ -x \"$p\" ] || {{ echo {1}lacking; exit 0; }}; "
      "echo {1}program \"$p\"; \"$p\" launch --describe 2>&1 || \"$p\" --version 2>&1",
      shell_word(options.folder), kMark, program);
}

// The last line of ssh's output is the reason. Lines before it are warnings.
std::string last_line(const std::string& output) {
  std::string last;
  for (const std::string& line : split(output, '\n'))
    if (const std::string_view text = trim(line); !text.empty()) last = text;
  return last;
}

std::string connection_problem(const std::string& output) {
  const std::string reason = last_line(output);
  if (reason.find("Could not resolve") != reason.npos) return "its name cannot be resolved";
  if (reason.find("Permission denied") != reason.npos)
    return fmt::format("ssh: {}; let this user in without a password: ssh-copy-id HOST", reason);
  if (reason.find("Host key verification failed") != reason.npos)
    return "ssh does not know its key yet; connect once by hand: ssh HOST";
  return reason.empty() ? "ssh cannot reach it" : reason;
}

}  // namespace

std::string describe_program(const std::string& version, const std::string& instructions,
                             const std::string& build) {
  return fmt::format("{0}version {1}\n{0}instructions {2}\n{0}build {3}\n", kMark, version,
                     instructions, build);
}

HostReport report_of(const std::string& host, int exit_code, const std::string& output,
                     const HostCheckOptions& options) {
  HostReport report = {.host = host};
  std::map<std::string, std::string> answers;
  for (const std::string& line : split(output, '\n'))
    if (const size_t at = line.find(kMark); at != line.npos) {
      const std::string answer = line.substr(at + kMark.size());
      const size_t space = std::min(answer.find(' '), answer.size());
      answers[answer.substr(0, space)] = trim(answer.substr(space));
    }
  if (answers.contains("folder")) {
    report.problem = fmt::format("has no folder {}; try --folder", options.folder);
  } else if (answers.contains("lacking")) {
    report.lacks_program = true;
    report.problem = fmt::format("has no program {}; try --install, or --program", options.program);
  } else if (!answers.contains("program")) {
    report.problem = connection_problem(output);
  } else if (const bool runs = answers.contains("version"); answers["version"] != options.version) {
    report.lacks_program = true;
    report.problem = runs ? fmt::format("has version {} of {}, expected {}; try --install",
                                        answers["version"], answers["program"], options.version)
                          : fmt::format("cannot run {}: {}", answers["program"], last_line(output));
  } else if (exit_code != 0) {
    report.problem = last_line(output);
  }
  report.program = answers["program"];
  report.instructions = answers["instructions"];
  report.build = answers["build"];
  return report;
}

std::vector<HostReport> check_hosts(const std::vector<std::string>& hosts,
                                    const HostCheckOptions& options) {
  std::vector<HostReport> reports;
  for (const std::string& host : hosts)
    if (std::ranges::count(reports, host, &HostReport::host) == 0) reports.push_back({host});
  const Deadline deadline = Deadline::after(options.seconds);
  std::vector<std::thread> threads;
  for (HostReport& report : reports)
    threads.emplace_back([&] {
      try {
        const ProcessResult result =
            run_program(remote(options, report.host, probe(options)), "/", deadline);
        report = report_of(report.host, result.exit_code, result.output, options);
      } catch (const Error& error) {
        report.problem = error.kind() == ErrorKind::timeout
                             ? fmt::format("did not answer within {:g} s", options.seconds)
                             : error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return reports;
}

std::string install_program(const std::string& host, const HostCheckOptions& options) {
  const std::string place = is_path(options.program)
                                ? shell_word(options.program)
                                : "\"$HOME\"/.local/bin/" + shell_word(options.program);
  // A running program cannot be overwritten but can be replaced.
  const std::string line = fmt::format(
      "p={0} && mkdir -p \"${{p%/*}}\" && cat >\"$p.new\" && chmod 755 \"$p.new\" && "
      "mv -f \"$p.new\" \"$p\"",
      place);
  std::vector<std::string> words = {"sh", "-c", "exec \"$@\" </proc/$PPID/exe", "sh"};
  for (const std::string& word : remote(options, host, line)) words.push_back(word);
  try {
    const ProcessResult result = run_program(words, "/", Deadline::after(kInstallSeconds));
    return result.exit_code == 0 ? "" : "cannot install: " + last_line(result.output);
  } catch (const Error& error) {
    return fmt::format("cannot install: {}", error.what());
  }
}

std::string different(std::string HostReport::*property, const std::vector<HostReport>& reports) {
  std::map<std::string, std::vector<std::string>> hosts;
  for (const HostReport& report : reports) hosts[report.*property].push_back(report.host);
  if (hosts.size() < 2) return {};
  std::vector<std::string> parts;
  for (const auto& [name, having] : hosts)
    parts.push_back(
        fmt::format("{} {} {}", join(having, ", "), having.size() == 1 ? "has" : "have", name));
  return join(parts, ", ");
}

}  // namespace artel
