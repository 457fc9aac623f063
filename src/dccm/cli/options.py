"""Arguments and flags that several commands share: each is explained once."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dccm.cli import completion as complete

KINDS = "Folder, archive, parquet, .npy, .npz, list (.txt, .csv), s3://bucket"

_IMAGES = KINDS + ', name of "dccm datasets", or - (list on standard input)'
OneSource = Annotated[str, typer.Argument(metavar="IMAGES", help=_IMAGES + ".")]
_SEVERAL = typer.Argument(metavar="IMAGES", help=_IMAGES + "; several are one.")
Images = Annotated[list[str], _SEVERAL]
MaybeImages = Annotated[list[str] | None, _SEVERAL]
Improve = Annotated[Path | None, typer.Option(metavar="RUN", help="Learn on from it, and from its corrections.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")]
ModelFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or model folder of DCCM.save.")]
Clusters = Annotated[
    str | None,
    typer.Option("-k", "--clusters", metavar="K|auto|5..30", help="Number of clusters; auto chooses."),
]
Method = Annotated[
    str, typer.Option("-m", "--method", metavar="NAME", help='See "dccm methods".', autocompletion=complete.methods)
]


def one_or_several(images: list[str] | None) -> Any:
    """What the user named: as it is if it is one thing; None if nothing is."""
    from dccm.data.sources.several import Sources

    if not images:
        return None
    return images[0] if len(images) == 1 else Sources(images)


_ENCODER = typer.Option(
    "--encoder", metavar="NAME", help='Pretrained network; see "dccm encoders".', autocompletion=complete.encoders
)
Encoder = Annotated[str, _ENCODER]
AnyEncoder = Annotated[str | None, _ENCODER]
Preset = Annotated[
    str | None, typer.Option(metavar="NAME", help='See "dccm presets".', autocompletion=complete.presets)
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="For everything that is written.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting; may be repeated.", autocompletion=complete.settings),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.")]
AnyDevice = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Decides every random draw.")]
Cache = Annotated[Path | None, typer.Option(metavar="FOLDER", help="For prepared images; default $DCCM_CACHE.")]
_MOST = 1024
"""Threads, or processes of one machine."""
Workers = Annotated[int | None, typer.Option(min=1, max=_MOST, metavar="N", help="Threads that decode images.")]
AnyOutput = Annotated[
    str | None, typer.Option("-o", "--output", metavar="FOLDER", help="For all that is written; or s3://bucket/out.")
]
ByShard = Annotated[
    int | None,
    typer.Option("--processes", min=1, max=_MOST, metavar="N", help="Do shards beside each other, a file for each."),
]
Engine = Annotated[
    str | None, typer.Option(metavar="processes|ray", help="Who does shards: this machine, or a Ray cluster.")
]
Readers = Annotated[int | None, typer.Option("--processes", min=1, max=_MOST, metavar="N", help="So many read shards.")]
Processes = Annotated[
    int | None,
    typer.Option("--processes", min=1, max=_MOST, metavar="N", help="So many learn together; torchrun for machines."),
]
DataRoot = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Official files of data sets; else downloaded.")]
Split = Annotated[str, typer.Option(metavar="train|test", help="These images alone.")]
Variant = Annotated[str, typer.Option(metavar="NAME", help="Of a data set: fine, CIFAR-100's 100 classes.")]
ClassFolders = Annotated[bool, typer.Option("--class-folders", help="First folders are true classes, for scores.")]
Reject = Annotated[
    str | None,
    typer.Option(metavar="SHARE|below:T", help="No cluster for the least sure: 0.1, below:0.6."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")]
