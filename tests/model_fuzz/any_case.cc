#include "tests/model_fuzz/any_case.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artel/base/error.h"
#include "artel/base/file.h"

namespace artel::model_fuzz {
namespace {

double patience = 60;
Pretence pretence;

std::optional<std::string> pretended(const AnyCase& any) {
  if (pretence.fault.empty() || to_text(any).find(pretence.at) == std::string::npos) return {};
  if (pretence.fault == "crash") std::abort();
  while (pretence.fault == "hang") ::pause();
  return "pretended to be wrong";
}

// The output of a child process, until it ends or the deadline passes.
std::optional<std::string> read_all(int pipe) {
  std::string text;
  char buffer[4096];
  for (pollfd wait = {pipe, POLLIN, 0};;) {
    if (::poll(&wait, 1, static_cast<int>(1000 * patience)) <= 0) return std::nullopt;
    const ssize_t count = ::read(pipe, buffer, sizeof buffer);
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

AnyCase make_case(uint64_t seed, uint64_t number, const std::string& kind) {
  constexpr const char* kTurns[] = {"networks", "meshes", "graphs", "networks",
                                    "networks", "graphs", "motions"};
  const std::string made = kind == "all" ? kTurns[number % std::size(kTurns)] : kind;
  if (made == "graphs") return random_graph(mix_key({seed, number}));
  Random random{seed, number};
  if (made == "motions") return random_motion(random);
  return made == "meshes" ? random_mesh_case(random) : random_case(random);
}

bool is_mesh(const AnyCase& any) {
  const auto* network = std::get_if<NetworkCase>(&any);
  return network && network->workers > 1;
}

AnyCase read_case(const std::string& file) {
  const std::string text = read_file(file);
  if (file.ends_with(".graph")) return parse_graph(text, file);
  if (file.ends_with(".motion")) return parse_motion(text, file);
  return parse_case(text, file);
}

void pretend(Pretence next) { pretence = std::move(next); }

void set_patience(double seconds) { patience = seconds; }

Verdict check(const AnyCase& any) {
  const auto* network = std::get_if<NetworkCase>(&any);
  const auto* graph = std::get_if<GraphCase>(&any);
  Verdict verdict = network ? check(*network)
                    : graph ? Verdict{what_is_wrong(*graph), {}}
                            : Verdict{what_is_wrong(std::get<MotionCase>(any)), {}};
  if (!verdict.wrong && !verdict.refused) verdict.wrong = pretended(any);
  return verdict;
}

std::optional<std::string> wrong_apart(const AnyCase& any) {
  int ends[2];
  require(::pipe(ends) == 0, ErrorKind::io, "[pipe] the operating system refused one");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string wrong = check(any).wrong.value_or("");
    const bool written = ::write(ends[1], wrong.data(), wrong.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  const std::optional<std::string> wrong = read_all(ends[0]);
  ::close(ends[0]);
  if (!wrong) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!wrong) return "the process hung";
  if (WIFSIGNALED(status))
    return fmt::format("the process was ended by '{}'", ::strsignal(WTERMSIG(status)));
  if (status != 0) return "the process ended early";
  return wrong->empty() ? std::nullopt : wrong;
}

AnyCase reduce(const AnyCase& any, const std::string& wrong, bool apart) {
  const auto find = [&](const AnyCase& next) -> std::optional<std::string> {
    return apart ? wrong_apart(next) : check(next).wrong;
  };
  if (const auto* graph = std::get_if<GraphCase>(&any)) return reduce(*graph, wrong, find);
  if (const auto* motion = std::get_if<MotionCase>(&any)) return reduce(*motion, wrong, find);
  return reduce(std::get<NetworkCase>(any), wrong, find);
}

std::string to_text(const AnyCase& any) {
  if (const auto* graph = std::get_if<GraphCase>(&any)) return to_text(*graph);
  if (const auto* motion = std::get_if<MotionCase>(&any)) return to_text(*motion);
  return to_toml(std::get<NetworkCase>(any));
}

std::string write_case(const AnyCase& any, const std::string& folder, const std::string& name) {
  if (!std::holds_alternative<NetworkCase>(any)) {
    const char* const kind = std::holds_alternative<GraphCase>(any) ? "graph" : "motion";
    const std::string path = fmt::format("{}/{}.{}", folder, name, kind);
    write_file_atomically(path, to_text(any));
    return path;
  }
  write_files(std::get<NetworkCase>(any), folder, name);
  return fmt::format("{}/{}.toml", folder, name);
}

}  // namespace artel::model_fuzz
