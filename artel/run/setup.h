// Creates what a configuration describes.
#pragma once

#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/data/table_encoder.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/config.h"
#include "artel/run/part.h"
#include "artel/train/trainer.h"

namespace artel {

struct RunData {
  data::DatasetPtr train;
  data::DatasetPtr validation;  // null unless the configuration asks for one
  data::DatasetPtr test;        // may have no samples
  data::Augmentation augment;

  const data::SampleLayout& layout() const { return train->layout(); }
  // The part that is evaluated after each epoch; it may have no samples.
  Part judge() const { return validation ? Part::validation : Part::test; }
  // Throws for a part that this data does not have.
  const data::DatasetPtr& at(Part part) const;
};

// "54,000 training, 6,000 validation and 10,000 test samples".
std::string sizes_of(const RunData& data);

// How the columns of a table become samples.
data::TableOptions table_options(const RunConfig& config);

// Opens the data of a run; a set of the catalogue is fetched first if it is not on this machine. A
// table is encoded by what a trained network has `learnt` of it before, if that is given.
RunData open_data(const RunConfig& config,
                  const std::shared_ptr<const data::TableEncoder>& learnt = {});
// Once before several workers open it: fetches it, and makes what opening leaves behind, such as a
// vocabulary. Sparse samples leave nothing, and may be too many to read twice.
void prepare_data(const RunConfig& config);

// One sample as the network sees it, after augmentation.
TensorType sample_type(const data::SampleLayout& layout, const data::Augmentation& augment);

// The name of a class, or its number if it has none.
std::string class_name(const data::SampleLayout& layout, int64_t index);

// What a configuration says about a model of the zoo. `classes` is that of the data; 0: as
// published.
nn::ModelOptions model_options(const ModelConfig& config, int64_t classes);
// `classes` as above, for models of the zoo.
Model make_model(const ModelConfig& config, int64_t classes);
// The same for samples of a layout; the vocabulary is that of their tokenizer.
Model make_model(ModelConfig config, const data::SampleLayout& layout);

// `layout` is that of the data: errors of values that were scaled are reported in their unit.
TrainerOptions trainer_options(const RunConfig& config, const data::SampleLayout& layout = {});

// What train.class_weights means for the samples of this data. Throws for another number of them
// than of classes.
std::vector<double> class_weights(const RunConfig& config, const data::Dataset& train);

// The number of parameter servers of the run; 0 for strategies without them. Throws if servers are
// requested for such a strategy.
int server_count(const RunConfig& config);
// Whether the run continues when a worker other than the first dies.
bool outlives_workers(const RunConfig& config);
// Whether the workers that are left go on when any of them dies.
bool is_elastic(const RunConfig& config);
// Whether what only one worker keeps is copied to another one.
bool has_mirrors(const RunConfig& config);

// In the folder of a published model, as Hugging Face has them.
inline constexpr const char* kPublishedConfig = "config.json";

// Which weights of a checkpoint: where training has averaged them, those, unless told otherwise.
enum class Weights { averaged, trained };

// The weights of a run, a checkpoint, a published model's folder or a file of any known format.
NamedTensors weights_at(const std::filesystem::path& path, Weights which = Weights::averaged);
// The same under the names of a network; published files may use variants. Throws for an untied
// head if the network has none.
NamedTensors weights_for(const ModelConfig& config, const std::filesystem::path& path,
                         Weights which = Weights::averaged);
// Loads the weights that the configuration names, if any, except those of its new layers; the log
// says which tensors are left over, except those of `elsewhere`. Throws for weights that do not
// fit, for a published model whose computation differs from ours, and for new layers that do not
// exist.
void load_configured_weights(Trainer& trainer, const ModelConfig& config,
                             const NamedTensors& elsewhere = {});

}  // namespace artel
