"""Arguments and flags that several commands share: each is explained once."""

from pathlib import Path
from typing import Annotated, Any

import typer

KINDS = "Folder, zip or tar archive, parquet, .npy or .npz file, list of paths (.txt, .csv)"

_IMAGES = KINDS + ', a name of "dccm datasets", or - for a list of paths on standard input'
OneSource = Annotated[str, typer.Argument(help=_IMAGES + ".")]
Images = Annotated[list[str], typer.Argument(help=_IMAGES + "; several are taken as one.")]
Run = Annotated[Path, typer.Argument(help="Run directory.")]
ModelFolder = Annotated[Path, typer.Argument(help="Run directory, or model folder of DCCM.save.")]
Clusters = Annotated[
    str | None,
    typer.Option("-k", "--clusters", metavar="K|auto|5..30", help="Number of clusters; it can be chosen for you."),
]
Method = Annotated[str, typer.Option("-m", "--method", help='See "dccm methods".')]


def one_or_several(images: list[str]) -> Any:
    """What the user named: as it is if it is one thing."""
    from dccm.data.sources.several import Sources

    return images[0] if len(images) == 1 else Sources(images)


_ENCODER = typer.Option("--encoder", help='Pretrained network that turns images into vectors; see "dccm encoders".')
Encoder = Annotated[str, _ENCODER]
AnyEncoder = Annotated[str | None, _ENCODER]
Preset = Annotated[str | None, typer.Option(help='See "dccm presets"; else fast, or paper where there is none.')]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Folder for everything that is written.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting; may be repeated.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
AnyDevice = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int | None, typer.Option(help="Decides every random draw.")]
Cache = Annotated[
    Path | None, typer.Option(help="Folder for prepared images; default $DCCM_CACHE, or your cache folder.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Threads that decode images; default one per processor.")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder with the official files of a data set; what is missing is downloaded.")
]
Split = Annotated[str, typer.Option(metavar="train|test", help="These images alone, where they are split.")]
Variant = Annotated[str, typer.Option(help="Of a data set by name: fine gives CIFAR-100 its 100 classes.")]
ClassFolders = Annotated[
    bool, typer.Option("--class-folders", help="The first folder of each path is the true class, for the scores only.")
]
Reject = Annotated[
    str | None,
    typer.Option(metavar="SHARE|below:T", help="No cluster for the least sure images: 0.1, or below:0.6."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the output folder.")]
