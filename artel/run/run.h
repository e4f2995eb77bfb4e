// A run as a TOML file describes it: its data, its network, its training, its folder.
//
//   artel::Run run("mnist.toml");
//   run.set("train.epochs", 3);
//   run.train();
//   artel::println("accuracy {:.4f}", run.evaluate().accuracy);
//
// This is what `artel train mnist.toml --set train.epochs=3` and `artel evaluate` do: the same
// folder, the same bits. Under a launcher (mpirun, srun, `artel launch`) every process creates the
// same Run, and train() connects them; worker 0 writes the folder and reports. Calls come from one
// thread at a time.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "artel/predict/predictor.h"
#include "artel/run/config.h"
#include "artel/run/part.h"
#include "artel/train/trainer.h"

namespace artel {

struct SavedRun;

// How workers on several machines find each other without a launcher.
struct MeetingPlace {
  // HOST:PORT, where worker 0 listens; or, to join a run that is under way, the same port at any of
  // its workers' machines, or its folder. Several addresses, separated by commas, are tried in
  // turn; a new run begins at the first.
  std::string address = {};
  int rank = -1;  // which worker this is; -1: in the order of arrival
  // A secret shared by all workers: itself, or in a file; else the variable ARTEL_TOKEN has it.
  std::string token = {}, token_file = {};
  std::string interface = {};  // of the network; empty: as routed
};

struct RunOptions {
  // The folder of the run: `out`, or runs/NAME; both empty: runs/STEM of STEM.toml (runs/run
  // without a file), or the first that is free of runs/STEM-2, runs/STEM-3, ...
  std::string out = {}, name = {};
  bool resume = false;                      // continue from the newest checkpoint there
  bool force = false;                       // ... even if what decides the result has changed
  bool quiet = false;                       // print neither progress nor results
  std::vector<std::string> overrides = {};  // "train.epochs=3", as after --set; applied before any
                                            // `set`
  std::vector<Callback> after_step = {}, after_epoch = {};  // called on each worker
  // While training, the first interrupt or termination signal stops after the current step and
  // saves; the second one ends the process.
  bool stop_on_signals = false;
  // evaluate, predict and so on use what train() has left in memory. Otherwise they read the
  // folder, and workers that keep only parts of a network need no memory for all of it.
  bool uses_network = true;
  std::filesystem::path trace = {};  // what each worker did when, for Perfetto; empty: none
  std::optional<MeetingPlace> join = {};
};

struct RunResult {
  int rank = 0;                       // of this worker; -1: a parameter server, without results
  std::filesystem::path folder = {};  // at worker 0
  FitResult fit = {};
  int64_t parameters = 0;
  int signal = 0;  // that stopped the run, at whichever worker it came
};

class Run {
 public:
  // Throws like read_config (run/config.h).
  explicit Run(const std::filesystem::path& file, RunOptions options = {});
  // Relative paths in it begin at the working folder.
  explicit Run(const RunConfig& config, RunOptions options = {});
  // The folder of a run that has been trained, to use it or to train it further.
  static Run open(const std::filesystem::path& folder, RunOptions options = {});
  ~Run();
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;

  // The same as --set KEY=VALUE: text needs no quotes, and a list is text such as
  // R"(["flatten", "dense 10"])". Throws the same errors, and then changes nothing.
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  template <typename T>
  requires std::is_arithmetic_v<T>
  void set(std::string_view key, T value) { set(key, std::string_view(fmt::format("{}", value))); }

  const RunConfig& config() const { return config_; }
  // Set on worker 0 once train(), or a function that uses the trained network, has chosen it;
  // otherwise empty.
  const std::filesystem::path& folder() const { return folder_; }

  // Trains alone, or together with the workers and servers that the launcher started or that meet
  // where `join` says. Throws if the configuration asks for other processes and there are none.
  // Each call is a separate run, in its own folder unless it resumes. Workers can join only once,
  // so several runs among them share one Cluster.
  RunResult train();
  // The same with the caller's cluster, which has the servers that the strategy needs.
  RunResult train(Cluster& cluster);

  // Whether the configuration asks for workers or servers that nobody has started.
  bool lacks_workers() const;
  // Fetches the data if it is not here, once before several workers open it.
  void prepare_data() const;

  // The trained network in use, in this process alone: as train() left it or, without that, as the
  // newest checkpoint in the folder has it.
  Evaluation evaluate(Part part = Part::test);
  // The network's output for rows of inputs.
  Tensor predict(const Tensor& rows);
  // The same for a picture (JPEG, PNG) or the samples of an NPY or NPZ file.
  Tensor predict(const std::filesystem::path& file);
  Predictor predictor();
  // The layout of samples, with the names of classes.
  const data::SampleLayout& layout();

 private:
  struct Trained {
    data::SampleLayout layout;
    Parameters weights;
  };

  // Relative paths begin at `base`.
  Run(std::string text, std::string where, std::filesystem::path base, RunOptions options);
  std::optional<comm::GroupOptions> place() const;
  const SavedRun& saved();
  std::shared_ptr<const data::TableEncoder> learnt_table(Cluster& cluster) const;

  std::string text_, where_;  // TOML, and its file's name
  std::filesystem::path base_;
  RunOptions options_;
  RunConfig config_;
  std::filesystem::path folder_;
  std::optional<Trained> trained_;
  std::unique_ptr<SavedRun> saved_;  // made when it is needed
};

}  // namespace artel
