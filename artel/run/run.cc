#include "artel/run/run.h"

#include "artel/base/error.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/servers_inside.h"
#include "artel/run/interrupt.h"
#include "artel/run/run_folder.h"
#include "artel/run/samples.h"
#include "artel/run/saved_run.h"
#include "artel/run/setup.h"
#include "artel/run/train_linear.h"
#include "artel/run/train_network.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

}  // namespace

Run::Run(std::string text, std::string where, RunOptions options)
    : text_(std::move(text)),
      where_(std::move(where)),
      options_(std::move(options)),
      config_(parse_config(text_, where_, options_.overrides)) {}

Run::Run(const fs::path& file, RunOptions options)
    : Run(read_config_text(file), file.string(), std::move(options)) {}

Run::Run(const RunConfig& config, RunOptions options)
    : Run(to_toml(config), "run", std::move(options)) {}

Run Run::open(const fs::path& folder, RunOptions options) {
  const std::optional<RunFolder> found = find_run(folder);
  require(found.has_value(), ErrorKind::not_found, "[{}] is not the folder of a run",
          folder.string());
  options.out = found->path().string();
  return Run(found->config(), std::move(options));
}

Run::~Run() = default;
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;

void Run::set(std::string_view key, std::string_view value) {
  std::vector<std::string> overrides = options_.overrides;
  overrides.push_back(fmt::format("{}={}", key, value));
  config_ = parse_config(text_, where_, overrides);
  options_.overrides = std::move(overrides);
  saved_.reset();
}

// How this process joins the others; nothing if it is alone.
std::optional<comm::GroupOptions> Run::place() const {
  const int servers = server_count(config_);
  std::optional<comm::GroupOptions> place = launched_group();
  if (const std::optional<MeetingPlace>& join = options_.join)
    place = {.transport = "gloo",
             .rank = join->rank,
             .size = static_cast<int>(config_.cluster.workers) + servers,
             .address = join->address,
             .token = join->token,
             .interface = join->interface};
  if (!place) return {};
  const std::string& wanted = config_.cluster.transport;
  require(wanted == "auto" || wanted == place->transport, ErrorKind::invalid_argument,
          "cluster.transport: got \"{}\", but these workers were started to join by {}; try "
          "\"auto\"",
          wanted, place->transport);
  place->servers = servers;
  place->outlives_workers = outlives_workers(config_);
  return place;
}

bool Run::lacks_workers() const {
  return (config_.cluster.workers > 1 || server_count(config_) > 0) && !place();
}

void Run::prepare_data() const {
  if (is_linear(config_))
    sparse_files(config_);
  else
    open_data(config_);
}

RunResult Run::train() {
  require(!lacks_workers(), ErrorKind::invalid_argument,
          "[{}] cluster: got {} workers and {} servers, but nobody has started them; try mpirun, "
          "or cluster.workers = 1 with a strategy that needs no servers",
          where_, config_.cluster.workers, server_count(config_));
  const std::optional<comm::GroupOptions> place = this->place();
  std::optional<ServersInside> inside;
  if (place && config_.cluster.servers_inside) inside.emplace(*place);
  Cluster cluster = place ? Cluster(*place) : Cluster();
  return train(cluster);
}

RunResult Run::train(Cluster& cluster) {
  saved_.reset();
  trained_.reset();
  folder_.clear();
  if (cluster.is_server()) {
    // Whoever stops the run stops the workers; servers end when these have left.
    std::optional<HandleSignals> ignored;
    if (options_.stop_on_signals) ignored.emplace(SIG_IGN);
    cluster.serve();
    return {.rank = -1};
  }
  RunResult result;
  cluster.attempt([&] {
    std::optional<RunFolder> folder;  // at worker 0
    if (cluster.rank() == 0)
      folder = choose_folder({where_, options_.out, options_.name, options_.resume});
    const RunFolder* const written = folder ? &*folder : nullptr;
    if (is_linear(config_)) {
      result = train_linear(config_, cluster, written, options_);
    } else {
      TrainedNetwork trained = train_network(config_, cluster, written, options_);
      result = std::move(trained.result);
      trained_ = {std::move(trained.layout), std::move(trained.weights)};
    }
    if (folder) folder_ = folder->path();
  });
  result.rank = cluster.rank();
  result.folder = folder_;
  return result;
}

const SavedRun& Run::saved() {
  if (saved_) return *saved_;
  require(!is_linear(config_), ErrorKind::unsupported,
          "[{}] the strategy \"ddpg\" trains a linear model, expected a network", where_);
  std::optional<RunFolder> folder;
  if (!trained_) {
    folder = choose_folder({where_, options_.out, options_.name, /*resume=*/true});
    require(fs::exists(folder->samples()), ErrorKind::not_found,
            "[{}] nothing has been trained there; try train() first", folder->path().string());
  }
  auto run = std::make_unique<SavedRun>(config_, folder ? folder->load_layout() : trained_->layout);
  if (folder) {
    run->load(weights_for(config_.model, folder->path()), folder->path().string());
    folder_ = folder->path();
  } else {
    run->load(trained_->weights, where_);
  }
  saved_ = std::move(run);
  return *saved_;
}

Evaluation Run::evaluate() { return saved().evaluate(); }

Tensor Run::predict(const Tensor& rows) { return saved().trainer->predict(rows); }

Tensor Run::predict(const fs::path& file) {
  const SavedRun& run = saved();
  return predict(read_samples(file, run.layout, run.augment));
}

Predictor Run::predictor() {
  const SavedRun& run = saved();
  const int64_t threads = config_.cluster.threads;
  return Predictor(make_model(run.config.model, run.layout), run.sample(),
                   weights_in(run.trainer->parameters()),
                   threads > 0 ? static_cast<int>(threads) : run.cluster->cores());
}

const data::SampleLayout& Run::layout() { return saved().layout; }

}  // namespace artel
