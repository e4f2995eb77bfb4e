#include "artel/base/synonyms.h"

#include <cctype>

namespace artel {
namespace {

struct Synonyms {
  const char* ours;
  std::vector<std::string_view> theirs;  // in lower case, without underscores
};

const std::vector<Synonyms>& all_synonyms() {
  static const std::vector<Synonyms> all = {
      // Layers.
      {"dense", {"dense", "linear", "fc", "fullyconnected", "innerproduct", "affine"}},
      {"conv", {"conv", "conv2d", "convolution", "convolution2d"}},
      {"conv_transpose", {"convtranspose2d", "conv2dtranspose", "deconv", "deconvolution"}},
      {"max_pool", {"maxpool", "maxpool2d", "maxpooling", "maxpooling2d"}},
      {"average_pool", {"avgpool", "avgpool2d", "averagepooling", "averagepooling2d"}},
      {"adaptive_average_pool",
       {"adaptiveavgpool", "adaptiveavgpool2d", "globalaveragepool", "globalaveragepooling2d"}},
      {"batch_norm", {"bn", "batchnorm", "batchnorm1d", "batchnorm2d", "batchnormalization"}},
      {"layer_norm", {"ln", "layernorm", "layernormalization"}},
      {"rms_norm", {"rmsnorm"}},
      {"attention", {"mha", "multiheadattention", "selfattention"}},
      {"feed_forward", {"ffn", "mlp"}},
      {"leaky_relu", {"leakyrelu"}},
      {"silu", {"swish"}},
      {"reshape", {"view"}},
      // Losses and metrics.
      {"cross_entropy",
       {"ce", "crossentropy", "crossentropyloss", "categoricalcrossentropy",
        "sparsecategoricalcrossentropy", "nll", "nllloss", "logloss", "softmax"}},
      {"binary_cross_entropy", {"bce", "bceloss", "bcewithlogitsloss", "binarycrossentropy"}},
      {"mse", {"mseloss", "meansquarederror", "l2", "squarederror"}},
      {"l1", {"mae", "l1loss", "meanabsoluteerror"}},
      {"smooth_l1", {"huber", "huberloss", "smoothl1loss"}},
      {"accuracy", {"acc", "accuracyscore"}},
      {"mean absolute error", {"mae", "meanabsoluteerror", "l1"}},
      {"mean squared error", {"mse", "meansquarederror"}},
      {"auc", {"rocauc", "rocaucscore", "auroc"}},
      {"r2", {"r2score", "rsquared"}},
      {"f1", {"f1score", "fscore"}},
      // Options and configuration keys.
      {"lr", {"lr", "learningrate", "learningrateinit", "eta", "stepsize"}},
      {"weight_decay", {"wd", "weightdecay"}},
      {"batch_size", {"bs", "batch", "batchsize", "minibatchsize"}},
      {"epochs", {"numepochs", "nepochs", "maxepochs", "maxiter"}},
      {"steps", {"maxsteps", "numsteps", "iterations"}},
      {"patience", {"earlystopping", "niternochange"}},
      {"seed", {"randomstate", "randomseed", "manualseed"}},
      {"workers", {"numworkers", "nworkers", "nprocpernode", "worldsize"}},
      {"threads", {"numthreads", "njobs"}},
      {"layers", {"hiddenlayersizes"}},
  };
  return all;
}

}  // namespace

std::vector<std::string> synonyms_of(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, name.find('(')))
    if (c != '_' && c != '-' && c != ' ')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> ours;
  for (const Synonyms& synonyms : all_synonyms())
    for (const std::string_view theirs : synonyms.theirs)
      if (theirs == plain) ours.emplace_back(synonyms.ours);
  return ours;
}

}  // namespace artel
