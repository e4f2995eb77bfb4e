// Training: alone, among processes that a launcher started, or in copies of this process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/cli/program.h"
#include "artel/cli/workers.h"
#include "artel/cluster/launcher.h"
#include "artel/comm/connection/file_handle.h"
#include "artel/run/run.h"
#include "data.h"
#include "interop.h"
#include "trained_run.h"

namespace artel::python {
namespace {

namespace fs = std::filesystem;

struct TrainRequest {
  std::optional<fs::path> file;  // empty if the overrides are the whole configuration
  RunOptions options;
  GivenData data;  // empty to use the data of the configuration
};

Run make_run(const TrainRequest& request) {
  return request.file ? Run(*request.file, request.options)
                      : Run(default_config(request.options.overrides), request.options);
}

// A file in memory in which workers leave how the run ended, a line each, for this process.
class Endings {
 public:
  Endings() : file_(::memfd_create("endings", MFD_CLOEXEC)) {
    require(file_.get() >= 0 && ::fcntl(file_.get(), F_SETFL, O_APPEND) == 0, ErrorKind::io,
            "memfd_create failed");
  }
  void add(std::string_view kind, const std::string& text) const {
    const std::string line = fmt::format("{} {}\n", kind, text);
    (void)!::write(file_.get(), line.data(), line.size());
  }
  // The first ending of a kind; empty if there is none.
  std::string first(std::string_view kind) const {
    const std::string all = read_file(fmt::format("/proc/self/fd/{}", file_.get()));
    for (const std::string& line : split(all, '\n'))
      if (line.starts_with(fmt::format("{} ", kind))) return line.substr(kind.size() + 1);
    return "";
  }

 private:
  comm::FileHandle file_;
};

// Runs one worker or server in a copy of this process. Returns its exit code.
int work(const TrainRequest& request, const Endings& endings) {
  constexpr int kFailure = 1;
  const auto report = [&](const Error& error) {
    if (const auto text = cli::report_of(error))
      endings.add("error", fmt::format("{} {}", static_cast<int>(error.kind()), *text));
    return kFailure;
  };
  try {
    const RunResult result = make_run(request).train();
    if (!result.folder.empty()) endings.add("folder", result.folder.string());
    return result.signal == 0 ? 0 : 128 + result.signal;
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::memory, "out of memory"));
  } catch (const std::exception& error) {
    return report(Error(ErrorKind::internal, error.what()));
  }
}

// Forks with os.fork(), so that Python's state is usable in the copy. Writes buffered output first,
// because the copy would write it again.
pid_t fork_python() {
  const nb::gil_scoped_acquire gil;
  std::fflush(nullptr);
  return nb::cast<pid_t>(nb::module_::import_("artel._train").attr("fork")());
}

// Writes the buffered output of a copy of this process, which ends without the interpreter's
// clean-up.
void flush_output() {
  const nb::gil_scoped_acquire gil;
  try {
    nb::module_::import_("artel._train").attr("flush")();
  } catch (const nb::python_error&) {  // such as a closed pipe: the worker has done its work
  }
  std::fflush(nullptr);
}

[[noreturn]] void raise_interrupt(int signal, const fs::path& folder) {
  const nb::gil_scoped_acquire gil;
  const std::string text = fmt::format(
      "stopped after a step and saved; artel.train(..., out='{}', resume=True) continues",
      folder.string());
  if (signal == SIGTERM)
    PyErr_SetObject(PyExc_SystemExit, nb::int_(128 + signal).ptr());
  else
    PyErr_SetString(PyExc_KeyboardInterrupt, text.c_str());
  throw nb::python_error();
}

// Runs the workers as copies of this process, which share its samples, and waits for them.
std::shared_ptr<TrainedRun> train_in_copies(const TrainRequest& request, const RunConfig& config) {
  const Endings endings;
  cli::LocalRun run = cli::local_run(config);
  run.body = [&] {
    const int code = work(request, endings);
    flush_output();
    return code;
  };
  run.fork = fork_python;
  const int code = cli::launch_here(run);
  const std::string folder = endings.first("folder");
  if (code == 128 + SIGINT || code == 128 + SIGTERM) raise_interrupt(code - 128, folder);
  if (const std::string error = endings.first("error"); code != 0 && !error.empty()) {
    const size_t space = error.find(' ');
    throw Error(static_cast<ErrorKind>(std::stoi(error.substr(0, space))), error.substr(space + 1));
  }
  require(code == 0 && !folder.empty(), ErrorKind::communication,
          "the workers ended with exit code {} and gave no reason", code);
  return std::make_shared<TrainedRun>(RunSource{.path = folder}, request.data);
}

std::shared_ptr<TrainedRun> train(const TrainRequest& request) {
  std::optional<GivenDataScope> given;
  if (request.data.samples.train || request.data.table) given.emplace(request.data);
  auto run = std::make_shared<Run>(make_run(request));
  if (run->lacks_workers()) {
    if (!given) run->prepare_data();  // once, before all workers need it
    return train_in_copies(request, run->config());
  }
  const RunResult result = run->train();
  if (result.signal != 0)
    raise_interrupt(result.signal,
                    result.folder.empty() ? result.fit.checkpoints.parent_path() : result.folder);
  return std::make_shared<TrainedRun>(run, result, request.data);
}

// Calls a function of the user's with the state of training. It stops training by returning False.
Callback as_callback(const nb::object& function) {
  const std::string name = nb::cast<std::string>(
      nb::getattr(function, "__name__", nb::str(function.type().attr("__name__"))));
  return [function = shared(function), who = "callback " + name](const TrainingState& state) {
    return with_python(who, [&] {
      const nb::object answer = (*function)(nb::cast(&state, nb::rv_policy::reference));
      return !answer.is(nb::handle(Py_False));
    });
  };
}

std::vector<Callback> as_callbacks(const nb::list& functions) {
  std::vector<Callback> callbacks;
  for (const nb::handle function : functions)
    callbacks.push_back(as_callback(nb::borrow(function)));
  return callbacks;
}

nb::dict values_of(const std::vector<MetricValue>& metrics) {
  nb::dict values;
  for (const MetricValue& metric : metrics)
    if (metric.single) values[metric.name.c_str()] = metric.value;
  return values;
}

// The number of this process among those that its launcher started, which it keeps if it is started
// again. Empty if the workers have joined one by one.
std::optional<int> launched_rank(const TrainingState& state) {
  const std::optional<comm::GroupOptions> place = launched_group();
  if (!place) return state.workers > 1 ? std::nullopt : std::optional(0);
  if (place->transport != "mpi") return place->rank;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* const rank = std::getenv(name)) return std::atoi(rank);
  return std::nullopt;
}

void add_state(nb::module_& module) {
  using State = TrainingState;
  nb::class_<State>(module, "TrainingState",
                    "What a callback sees after a step or an epoch, and only until it returns.")
      .def_ro("epoch", &State::epoch, "The current epoch, from 1.")
      .def_ro("epochs", &State::epochs, "Planned for the whole run.")
      .def_ro("step", &State::step, "Finished steps.")
      .def_ro("steps", &State::steps, "Planned for the whole run.")
      .def_ro("samples", &State::samples, "Samples seen since training began.")
      .def_ro("loss", &State::loss, "Loss of the step; after an epoch its mean.")
      .def_ro("learning_rate", &State::learning_rate)
      .def_ro("accuracy", &State::accuracy)
      .def_ro("tested", &State::tested, "Whether the validation part was evaluated.")
      .def_ro("test_loss", &State::test_loss)
      .def_ro("test_accuracy", &State::test_accuracy)
      .def_ro("workers", &State::workers, "Workers that made the step.")
      .def_prop_ro("rank", launched_rank,
                   "The number of this worker among those that were started together; None if "
                   "workers joined one by one.")
      .def_ro("seconds", &State::seconds, "Since training began.")
      .def_prop_ro(
          "metrics", [](const State& state) { return values_of(state.metrics); },
          "Metrics on the training batches, by name.")
      .def_prop_ro(
          "test_metrics", [](const State& state) { return values_of(state.test_metrics); },
          "Metrics on the validation part, by name.");
}

std::shared_ptr<TrainedRun> train_from_python(
    const std::optional<fs::path>& file, const std::vector<std::string>& overrides,
    const data::DatasetPtr& train, const data::DatasetPtr& test,
    const std::shared_ptr<data::Table>& table, const std::shared_ptr<data::Table>& test_table,
    const std::optional<Array>& row_weights, const std::string& out, const std::string& name,
    bool resume, bool force, bool quiet, const fs::path& trace, const nb::list& after_step,
    const nb::list& after_epoch, const std::string& join, int rank, const std::string& token,
    bool stop_on_signals, bool common_seed) {
  TrainRequest request = {
      .file = file,
      .options = {.out = out,
                  .name = name,
                  .resume = resume,
                  .force = force,
                  .quiet = quiet,
                  .overrides = overrides,
                  .after_step = as_callbacks(after_step),
                  .after_epoch = as_callbacks(after_epoch),
                  .stop_on_signals = stop_on_signals,
                  .common_seed = common_seed,
                  .trace = trace},
      .data = {{train, test}, table, test_table, row_weights ? borrowed(*row_weights) : Tensor()}};
  if (!join.empty())
    request.options.join = MeetingPlace{.address = join, .rank = rank, .token = token};
  const nb::gil_scoped_release without_gil;
  return artel::python::train(request);
}

}  // namespace

void add_runs(nb::module_& module) {
  add_state(module);
  module.def(
      "train", train_from_python, nb::arg("file").none(), nb::arg("overrides"),
      nb::arg("train") = nb::none(), nb::arg("test") = nb::none(), nb::arg("table") = nb::none(),
      nb::arg("test_table") = nb::none(), nb::arg("row_weights") = nb::none(), nb::arg("out") = "",
      nb::arg("name") = "", nb::arg("resume") = false, nb::arg("force") = false,
      nb::arg("quiet") = false, nb::arg("trace") = fs::path(), nb::arg("after_step") = nb::list(),
      nb::arg("after_epoch") = nb::list(), nb::arg("join") = "", nb::arg("rank") = -1,
      nb::arg("token") = "", nb::arg("stop_on_signals") = true, nb::arg("common_seed") = false);
}

}  // namespace artel::python
