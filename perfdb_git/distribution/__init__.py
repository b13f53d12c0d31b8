"""Work on a Dask cluster: several processes of this machine, or a cluster that is there already."""
